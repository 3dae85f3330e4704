"""The words that `engine.methods.are.tagging` knows by class; everything else is told by endings and neighbours."""

from __future__ import annotations


def _set(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


DETERMINERS = _set(
    "a an the this that these those his her its their our my your some any each every no another both all several "
    "many most few more other such one two three four five six seven eight nine ten"
)
PREPOSITIONS = _set(
    "in on at by of for from with without into onto over under between among during through about against before "
    "after since until till toward towards across along around behind beside besides beyond despite except inside "
    "outside near off per than like as upon via within throughout amid following according including worth "
    "alongside"
)
PRONOUNS = _set("he she it they we you i who there one him them us himself herself itself themselves everyone")
AUXILIARIES = _set(
    "is are was were am be been being has have had do does did will would can could may might must shall should "
    "isn't aren't wasn't weren't hasn't haven't hadn't doesn't don't didn't won't cannot can't couldn't wouldn't"
)
FINITE_AUXILIARIES = AUXILIARIES - _set("be been being")
BE = _set("is are was were am be been being")
CONJUNCTIONS = _set("and or but nor yet")
SUBORDINATORS = _set("because although though while whereas when whenever if unless that so whether once where")
RELATIVES = _set("who which whom whose where")
ADVERBS = _set(
    "not never neither also then now there here still only just even however thus therefore moreover furthermore too "
    "again often always soon later once first already almost nearly about very quite most more n't together "
    "respectively finally currently eventually twice instead together nevertheless ever"
)
NOT_ADVERBS = _set(
    "family italy july only early daily weekly monthly supply assembly reply ally elderly friendly likely"
)
# Verbs whose plain form, -s, -ed and -ing are counted as verbs where their place allows.
REGULAR = _set(
    "accept accuse achieve act add address admit adopt aim air allow announce appear appoint argue arrest arrive "
    "ask attack attend attract award base believe belong call carry cause celebrate change claim close combine "
    "comprise compete complete compose concern conclude confirm connect consider consist contain continue "
    "contribute control cover create credit cross criticise criticize debut decide declare defeat define deliver "
    "deny depend depict derive describe design destroy develop die direct disappear discover divide earn edit "
    "employ enable encourage end enjoy enter establish exceed exist expand explain express extend face fail "
    "feature file finish flow focus follow force form found function gain gather generate govern graduate guide "
    "handle happen help identify import improve include increase indicate influence inhabit inspire intend "
    "introduce invade invent involve join key kill lack last launch lie live locate look maintain mark marry mean "
    "mention merge move name need obtain occupy occur offer open operate order own pass perform play possess "
    "praise prefer premiere prepare present produce propose protect prove provide publish purchase rank reach "
    "receive recognise recognize record reduce refer reflect refuse regard reject relate release rely remain "
    "remove replace report represent require resign resemble result retain retire return reveal reverse rule sail "
    "score separate serve share sign specialise star start state stay stop stretch struggle study succeed suffer "
    "suggest supply support surround survive target tend touch trade train transfer travel treat turn use vary "
    "view visit vote want watch win work post approve withdraw print bank lodge count note rely point admit drop "
    "grant issue hold pay alert dissolve heat cool filter wash collect dry weigh stir pour boil agree apply avoid "
    "disagree emerge evolve expect inform learn migrate persuade prevent recommend recover satisfy solve suffice "
    "transform translate"
)
IRREGULAR_PAST = _set(
    "became began broke brought built bought came chose cut drew drove ate fell felt fought found flew forgot "
    "gave got grew heard held hit kept knew laid led left lent lost made meant met paid put ran read rose said "
    "saw sang sank sat sold sent set shot showed shut slept spoke spent spread stood stole struck swore taught "
    "told thought threw took understood went won wore wrote underwent overcame withdrew gone arose awoke bore "
    "bled blew bred burnt caught clung crept dealt dug dreamt drank fed fled flung forbade foresaw foretold "
    "forgave forsook froze hung hid knelt leapt learnt lit mistook oversaw overheard overrode overran overthrew "
    "overtook partook proved quit rebuilt redid remade repaid resold retold rewrote rode rang sought shook shone "
    "shrank slid slung sped spelt spun sprang stuck stung stank strode strove swept swam swung tore trod "
    "undertook undid upheld woke wove wept withheld withstood wrung misled outran"
)
IRREGULAR_PARTICIPLES = _set(
    "become begun broken brought built bought chosen drawn driven eaten fallen felt fought found flown given "
    "gotten grown heard held kept known laid led left lost made meant met paid put ridden risen said seen sung "
    "sold sent set shot shown spoken spent stood stolen struck taught told thought thrown taken understood won "
    "worn written born drafted built sung split overseen arisen awoken bitten bled blown borne bred burnt caught "
    "clung crept dealt done drunk dug fed fled flung forbidden foreseen foretold forgiven forgotten forsaken "
    "frozen hidden hung knelt learnt lent mistaken misled overcome overheard overridden overtaken overthrown "
    "proven rebuilt redone remade repaid resold retold rewritten rung sat sewn shaken shone shrunk slain "
    "slept slid sought sown spelt sprung spun stuck stung sunk swept swollen sworn swum swung torn trodden "
    "undergone undertaken undone upheld withdrawn withheld withstood woken woven wrung"
)
IRREGULAR_PRESENT = _set(
    "becomes begins breaks brings builds buys comes chooses cuts draws drives eats falls feels fights finds flies "
    "gives gets goes grows hears holds hits keeps knows lays leads leaves loses makes means meets pays puts runs "
    "reads rises says sees sells sends sets shows sings sits speaks spends stands takes teaches tells thinks "
    "throws understands wins wears writes lies dies ties tries carries marries occupies varies studies"
)
IRREGULAR_PLURAL = _set(
    "become begin bring build come give get go hold keep know lead leave lie make meet run see tell"
)
