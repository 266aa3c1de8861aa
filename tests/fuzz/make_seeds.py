#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the seeds of fuzz_perfdata and fuzz_record into corpus/, from nothing but the layouts.

    make_seeds.py [FOLDER]
"""
import os
import struct
import sys

IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, STREAM, RAW, BRANCH, UREGS, USTACK, \
    WEIGHT, SRC, IDENTIFIER, TRANSACTION, IREGS, PHYS, AUX, CGROUP, DPAGE, CPAGE, WSTRUCT = (
        1 << i for i in range(25))
SAMPLE_ID_ALL = 1 << 18


def u64(*values):
    return struct.pack('<%dQ' % len(values), *values)


def u32(*values):
    return struct.pack('<%dI' % len(values), *values)


def record(kind, body, misc=0):
    body += b'\0' * (-len(body) % 8)
    return struct.pack('<IHH', kind, misc, 8 + len(body)) + body


def string(text):
    text = text.encode() + b'\0'
    return text + b'\0' * (-len(text) % 8)


def feature_string(text):
    text = text.encode() + b'\0'
    text += b'\0' * (-len(text) % 64)
    return u32(len(text)) + text


def attr(sample_type, read_format=0, branch=0, kind=1, config=0, size=128):
    data = u32(kind, size) + u64(config, 4000, sample_type, read_format, SAMPLE_ID_ALL)
    data += u32(0, 0) + u64(0, 0, branch, 0xff)
    return data + b'\0' * (size - len(data))


TRAILER = u32(7, 7) + u64(1000) + u32(0, 0) + u64(5)
TYPE = IP | TID | TIME | CPU | PERIOD | IDENTIFIER | CALLCHAIN


def sample(ident=5, time=2000, ips=(0xfffffffffffffe00, 0x401000, 0x402000)):
    return record(9, u64(ident, 0x401000) + u32(7, 8) + u64(time) + u32(1, 0) +
                  u64(250000, len(ips), *ips), 2)


def records():
    yield record(3, u32(7, 7) + string('cat') + TRAILER, 1 << 13)
    yield record(1, u32(7, 7) + u64(0x400000, 0x1000, 0) + string('/bin/cat') + TRAILER)
    yield record(10, u32(7, 7) + u64(0x400000, 0x1000, 0) + u32(8, 1) + u64(9, 9) + u32(5, 2) +
                 string('/bin/cat') + TRAILER)
    yield record(10, u32(7, 7) + u64(0x400000, 0x1000, 0) + u32(20) + b'a' * 20 + u32(5, 2) +
                 string('/bin/cat') + TRAILER, 1 << 14)
    yield sample()
    yield record(7, u32(7, 1, 7, 1) + u64(1500) + TRAILER)
    yield record(2, u64(5, 3) + TRAILER)
    yield record(5, u64(1, 5, 5) + TRAILER)
    yield record(8, u32(7, 7) + u64(99, 5) + TRAILER)
    yield record(11, u64(0, 64, 0) + TRAILER)
    yield record(13, u64(2) + TRAILER)
    yield record(15, u32(1, 1) + TRAILER, 1 << 13)
    yield record(16, u32(7, 7) + u64(1, 3, 4) + TRAILER)
    yield record(17, u64(0xffff0000) + u32(64, 1) + string('bpf_prog') + TRAILER)
    yield record(18, u32(1, 2) + b'tagtagta' + TRAILER)
    yield record(19, u64(3) + string('/a.slice') + TRAILER)
    yield record(20, u64(0xffff0000) + u32(0x00010001) + b'\x90\xcc' + b'\0\0' + TRAILER)
    yield record(21, u64(1) + TRAILER)
    yield sample(time=1000)
    yield record(68, b'')
    yield record(71, u64(16, 0, 0) + u32(0, 7, 1, 0)) + b'A' * 16
    yield sample(time=3000)
    yield record(4, u32(7, 1, 7, 1) + u64(4000) + TRAILER)


def carriers(data):
    """Two parts of one zstd stream of raw blocks; the second record is cut in two."""
    frame = struct.pack('<IBB', 0xfd2fb528, 0, 0x38)
    parts = [struct.pack('<I', len(part) << 3)[:3] + part for part in (data[:100], data[100:])]
    return [frame + parts[0], parts[1]]


def features():
    yield 2, struct.pack('<IHH', 67, 0x8002, 48) + struct.pack('<i', -1) + b'b' * 20 + \
        u32(20) + string('/bin/cat')[:12]
    yield 3, feature_string('host')
    yield 7, u32(2, 2)
    yield 10, u64(1 << 20)
    yield 11, u32(2) + feature_string('perf') + feature_string("it's record")
    yield 12, u32(1, 128) + attr(TYPE) + u32(1) + feature_string('cpu-clock') + u64(5)
    yield 16, u32(1, 1) + feature_string('software')
    yield 17, u32(1) + feature_string('{anon_group}') + u32(0, 1)
    yield 21, u64(1000, 3000)
    yield 27, u32(1, 1, 1, 2, 65536)
    yield 29, u32(1, 1) + u64(10, 20)


def perf_file(attrs, data, with_features=True, data_size=None):
    offset = 104
    ids = b''
    section = b''
    for text, event_ids in attrs:
        section += text + u64(offset + len(ids), 8 * len(event_ids))
        ids += u64(*event_ids)
    body = ids + section
    data_at = offset + len(body)
    bits, table, payload = 0, b'', b''
    listed = list(features()) if with_features else []
    at = data_at + len(data) + 16 * len(listed)
    for number, content in listed:
        bits |= 1 << number
        table += u64(at + len(payload), len(content))
        payload += content
    header = b'PERFILE2' + u64(104, 128 + 16, offset + len(ids), len(section), data_at,
                               len(data) if data_size is None else data_size, 0, 0, bits, 0, 0, 0)
    return header + body + data + table + payload


def pipe_file(attrs, data):
    out = b'PERFILE2' + u64(16)
    for text, event_ids in attrs:
        out += record(64, text + u64(*event_ids))
        out += record(78, u64(2, event_ids[0]) + string('a name'))
        out += record(78, u64(0, event_ids[0]) + string('Joules'))
        out += record(78, u64(1, event_ids[0]) + struct.pack('<d', 0.5))
    for number, content in features():
        out += record(80, u64(number) + content) if number != 2 else content
    out += record(80, u64(32))
    out += record(66, u32(16, 0)) + b'\x17\x08\x44tracing0.6\0\0\0'
    return out + data


def perfdata_seeds():
    one = [(attr(TYPE), [5, 6])]
    two = one + [(attr(TYPE, config=9), [9])]
    data = b''.join(records())
    yield 'file', perf_file(one, data)
    yield 'two-events', perf_file(two, data + sample(9) + sample(77))
    yield 'killed', perf_file(one, data, with_features=False, data_size=0)
    yield 'unfinished', perf_file(one, data, with_features=False, data_size=len(data) - 80)
    parts = carriers(b''.join(r for r in records() if r[0] < 64))
    packed = b''.join(struct.pack('<IHH', 81, 0, 8 + len(part)) + part for part in parts)
    yield 'compressed', perf_file(one, packed)
    yield 'compressed2', perf_file(one, b''.join(record(83, u64(len(part)) + part)
                                                 for part in parts))
    yield 'pipe', pipe_file(two, data)
    yield 'pipe-compressed', pipe_file(one, packed)


def record_seeds():
    plain = u64(TYPE, 4, 0, 0, 0, 1)
    for i, text in enumerate(records()):
        yield 'record-%02d' % i, plain + text
    read = READ | BRANCH | UREGS | USTACK | WEIGHT | SRC | TRANSACTION | IREGS | PHYS | CGROUP | \
        DPAGE | CPAGE | AUX | RAW
    body = u64(2, 10, 9, 1, 5, 0, 2, 6, 0) + u32(4) + b'raw!' + \
        u64(1, 0, 0x401000, 0x402000, 1, 3) + u64(2, 1, 2) + u64(8, 0, 8) + u64(1, 2, 3) + \
        u64(2, 1) + u64(1, 2, 3, 4, 8, 0)
    yield 'wide', u64(read, 0x1f, (1 << 17) | (1 << 19), 3, 1, 1) + record(9, body)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), 'corpus')
    for target, seeds in (('perfdata', perfdata_seeds()), ('record', record_seeds())):
        os.makedirs(os.path.join(folder, target), exist_ok=True)
        for name, content in seeds:
            with open(os.path.join(folder, target, name), 'wb') as file:
                file.write(content)


if __name__ == '__main__':
    main()
