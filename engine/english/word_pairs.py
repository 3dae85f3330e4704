"""Pairs of words: opposites (one for the other contradicts) and rewordings (one for the other agrees)."""

from __future__ import annotations

_OPPOSITES = """
increase/decrease increased/decreased increases/decreases increasing/decreasing rise/fall rose/fell
rising/falling higher/lower high/low highest/lowest more/less most/least larger/smaller large/small
largest/smallest big/little biggest/smallest first/last before/after earlier/later early/late earliest/latest
north/south northern/southern east/west eastern/western upper/lower left/right old/new older/younger
oldest/youngest long/short longer/shorter longest/shortest won/lost win/lose wins/loses winning/losing
success/failure successful/unsuccessful positive/negative male/female man/woman men/women father/mother
son/daughter brother/sister husband/wife king/queen accepted/rejected approved/refused allowed/banned
allows/prevents public/private begin/end began/ended opened/closed open/closed start/end started/stopped
inside/outside internal/external buy/sell bought/sold hot/cold warm/cool heated/cooled add/remove
added/removed always/never all/none many/few best/worst better/worse good/bad strong/weak stronger/weaker
same/different above/below over/under up/down major/minor true/false legal/illegal rich/poor married/divorced
born/died birth/death alive/dead fast/slow faster/slower easy/difficult common/rare popular/unpopular
active/inactive full/empty light/dark white/black day/night summer/winter morning/evening sent/received
paid/owed credit/debit acid/base soluble/insoluble solid/liquid direct/indirect known/unknown
included/excluded includes/excludes maximum/minimum gained/lost present/absent near/far single/married
domestic/foreign primary/secondary both/neither with/without million/billion thousand/million hours/minutes
minutes/seconds weeks/months days/weeks years/months grams/kilograms dollars/euros metres/kilometres
miles/feet percent/times million/thousand
"""
_REWORDINGS = """
approximately/about/around/roughly; began/started; begin/start; start/beginning; also/additionally;
film/movie; however/nevertheless; because/since; located/situated; known as/called; many/numerous;
several/various; large/big; small/little; famous/well-known; won/received; received/got; became/turned
into; wrote/authored; created/made; founded/established; died/passed away; located in/found in;
released/issued; purchase/buy; purchased/bought; sold/traded; children/kids; child/kid; important/significant;
main/primary; primarily/mainly; mostly/largely; often/frequently; usually/typically; rapid/fast;
shows/displays; used/employed; uses/employs; help/assist; helped/assisted; required/needed; requires/needs;
consists of/is made up of; includes/contains; during/in the course of; throughout/across; ended/finished;
city/town; song/track; album/record; author/writer; lawyer/attorney; doctor/physician; car/automobile;
company/firm; job/position; show/programme; television/TV; United States/US; United Kingdom/UK; portrayed
by/played by; plays/portrays; stars/features; killed/slain; died in/passed away in; before/prior to;
after/following; near/close to; opposed/against; supported/backed; announced/declared; said/stated;
told/informed; largest/biggest; smallest/tiniest; entire/whole; total/overall; error/mistake; shop/store
"""


def table(text: str, separator: str | None) -> dict[str, list[str]]:
    """Each member of each slash-separated group with the other members.

    >>> table("hot/cold a/b", None)["cold"]
    ['hot']
    """
    result: dict[str, list[str]] = {}
    for group in " ".join(text.split()).split(separator):
        members = group.strip().split("/")
        for member in members:
            result.setdefault(member, []).extend(other for other in members if other != member)
    return result


ANTONYMS = table(_OPPOSITES, None)
SYNONYMS = table(_REWORDINGS, ";")
