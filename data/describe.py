"""Descriptions of events and masks, from glossary.tsv and sentences.tsv."""

import re


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

    def compose(self, name):
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
        return said[:1].upper() + said[1:]

    @staticmethod
    def plain(part):
        # A word of letters is read as one; what holds a digit, or is short, is a name.
        return part.lower() if part.isalpha() and len(part) > 4 else part

    def event(self, name):
        return self.sentences.get(name.upper()) or self.compose(name)

    def mask(self, event, name):
        return self.sentences.get(f'{event}:{name}'.upper()) or self.compose(name)
