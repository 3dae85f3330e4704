"""The AML task table (grounded refinement, table 17), each task with a question of the sample bank investigation.

The table's own strategy stands beside what the advisor says of the passages that are really retrieved: where the two
differ, the retrieval shape is another than the table supposes, and the page says so.
"""

from __future__ import annotations

from engine.refine.advisor import Branch
from engine.types import Value

CORPUS = "bank-investigation"


class Task(Value, frozen=True):
    """A task, the retrieval the table supposes for it, its strategy, and an example with a fitting `k`."""

    name: str
    shape: str
    noisy: bool
    strategy: str
    question: str
    k: int

    @property
    def branch(self) -> Branch:
        """The table's strategy as a branch."""
        return "overlap heuristic" if self.noisy else "nothing"


TASKS = (
    Task(
        name="Alert rationale",
        shape="Clean: one to three fired rules, the customer's profile",
        noisy=False,
        strategy="Baseline only; Self-Refine may do harm",
        question="Why was alert A-24-0317 closed at level one, and what was wrong with the closure?",
        k=3,
    ),
    Task(
        name="Regulatory threshold",
        shape="Clean: three to five sections of a rule",
        noisy=False,
        strategy="Baseline only",
        question="From what share upwards is a person a beneficial owner today, and what changes in 2027?",
        k=4,
    ),
    Task(
        name="Suspicious activity narrative",
        shape="Noisy: transactions, customer file, press, notes; 20 documents and more",
        noisy=True,
        strategy="Passage-overlap heuristic; v2c where earlier reviews left labels",
        question="What evidence shows that the engine sale under invoice PM-0412 was fictitious?",
        k=20,
    ),
    Task(
        name="Customer due diligence summary",
        shape="Noisy: registry, chain of owners, sanctions, press",
        noisy=True,
        strategy="Passage-overlap heuristic",
        question="How did the bank's knowledge of who owns Pellworth develop from 2022 to August 2024?",
        k=15,
    ),
    Task(
        name="Typology classification",
        shape="Noisy: the case's evidence and many typologies, of which one or two apply",
        noisy=True,
        strategy="Passage-overlap heuristic; v2c where there are typology labels",
        question="Which typologies do the cash lodgements and the payments abroad of Pellworth fit?",
        k=15,
    ),
    Task(
        name="Investigator's case summary",
        shape="Noisy: years of case history, earlier notes, outside data",
        noisy=True,
        strategy="Passage-overlap heuristic",
        question="In what order did the main events occur, from the setting up of the foreign vehicles to the first"
        " report?",
        k=20,
    ),
)
CAVEATS = (
    "The paper measured whether a claim stands in a passage. An investigation asks more: whether it stands in a primary"
    " source (ledger, registry, contract) rather than in a summary or the press. No method here tells the two apart.",
    "A language model as judge is for developing methods. Sign-off is a person's.",
)
