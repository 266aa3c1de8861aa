"""Descriptions of events and masks, from glossary.tsv and sentences.tsv."""

import re

# Masks of these are a request, what answers it and what snooping found, one behind the other.
OFFCORE = re.compile(r'(OCR|OFFCORE_RESPONSE)')
OFFCORE_PART = re.compile(r'(?<!NON)(?<!LOCAL)(?<!REMOTE)(?<!SNC)(?<!SOCKET)_'
                          r'(?=ANY_RESPONSE|L3_(?:HIT|MISS)|LLC_(?:HIT|MISS)|LOCAL_|REMOTE_|DRAM|'
                          r'SNC_|PMM|SNOOP_|SNP_)')


def read(path):
    rows = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith('#'):
            key, value = line.split('\t')
            if key in rows:
                raise SystemExit(f'{path}: {key} stands twice')
            rows[key] = value
    return rows


class Words:
    def __init__(self, here):
        self.glossary = read(here / 'glossary.tsv')
        self.sentences = read(here / 'sentences.tsv')
        self.longest = max(key.count('_') for key in self.glossary) + 1

    def compose(self, name, starts_sentence=True):
        """The longest parts of the name that the glossary knows, in its words; others as they are"""
        parts = [p for p in re.split(r'[_\-.:/ ]+', name.upper()) if p]
        words = []
        while parts:
            for n in range(min(self.longest, len(parts)), 0, -1):
                known = self.glossary.get('_'.join(parts[:n]))
                if known is not None:
                    break
            words.append(known if known is not None else self.plain(parts[0]))
            parts = parts[n:]
        said = ' '.join(w for w in words if w)
        return said[:1].upper() + said[1:] if starts_sentence else said

    @staticmethod
    def plain(part):
        # A word of letters is read as one; what holds a digit, or is short, is a name.
        return part.lower() if part.isalpha() and len(part) > 4 else part

    def event(self, name):
        return self.sentences.get(name.upper()) or self.compose(name)

    def mask(self, event, name):
        sentence = self.sentences.get(f'{event}:{name}'.upper())
        if sentence or not OFFCORE.match(event):
            return sentence or self.compose(name)
        first, *rest = OFFCORE_PART.split(name)
        return ', '.join([self.compose(first)] + [self.compose(part, False) for part in rest])
