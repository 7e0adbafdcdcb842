"""English sentences out of a MediaWiki XML dump.

``dump`` streams the articles, ``clean`` turns wikitext into paragraphs of running prose (``templates`` renders what
templates show), and ``sentences`` splits them and keeps what is usable for training. Something in the middle of a
sentence that cannot be rendered (a formula, an unknown template) leaves the character ``marks.DAMAGE`` behind, and the
sentence around it is dropped: a sentence that lost words would be a wrong training example.

No general wikitext parser is used: rendering inside out over a stack of open brackets is linear in the page, several
times faster than building a tree (docs/measured.md), and lets each construct decide whether it is silent, rendered or
damaging.
"""
