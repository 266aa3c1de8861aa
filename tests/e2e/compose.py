# SPDX-License-Identifier: MIT
"""Recordings put together byte by byte, of what this machine cannot record.

Layouts are those of perf_event_open(2) and of perf.data files; nothing here is shared with the
library that reads them.
"""
import struct

IP, TID, TIME, ADDR, CALLCHAIN, CPU = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 5, 1 << 7
PERIOD, RAW, BRANCH_STACK, REGS_USER = 1 << 8, 1 << 10, 1 << 11, 1 << 12
WEIGHT, DATA_SRC, TRANSACTION, REGS_INTR = 1 << 14, 1 << 15, 1 << 17, 1 << 18
PHYS_ADDR, CGROUP, DATA_PAGE_SIZE, CODE_PAGE_SIZE = 1 << 19, 1 << 21, 1 << 22, 1 << 23
WEIGHT_STRUCT = 1 << 24

TYPE_SOFTWARE, TYPE_RAW = 1, 4
PAGE_FAULTS, BPF_OUTPUT = 2, 10
ATTR_SIZE = 128
MISC_USER = 2


def words(*values):
    return struct.pack('<%dQ' % len(values), *values)


def attr(kind, config, sample_type, branches=0, regs_user=0, regs_intr=0):
    sample_id_all = 1 << 18
    return struct.pack('<IIQQQQQIIQQQQIiQIHHIIQ', kind, ATTR_SIZE, config, 1, sample_type, 0,
                       sample_id_all, 0, 0, 0, 0, branches, regs_user, 0, 0, regs_intr, 0, 0, 0, 0, 0,
                       0)


def record(kind, body, misc=0):
    return struct.pack('<IHH', kind, misc, 8 + len(body)) + body


def text(string):
    data = string.encode() + b'\0'
    return data + bytes(-len(data) % 8)


def trailer(sample_type, pid, time, cpu=0):
    data = b''
    if sample_type & TID:
        data += struct.pack('<II', pid, pid)
    if sample_type & TIME:
        data += words(time)
    if sample_type & CPU:
        data += struct.pack('<II', cpu, 0)
    return data


def mmap2(sample_type, pid, start, length, name, time=1):
    body = struct.pack('<IIQQQIIQQII', pid, pid, start, length, 0, 0, 0, 0, 0, 5, 2) + text(name)
    return record(10, body + trailer(sample_type, pid, time), MISC_USER)


def comm(sample_type, pid, name, time=1):
    return record(3, struct.pack('<II', pid, pid) + text(name) + trailer(sample_type, pid, time))


def cgroup(sample_type, number, path, time=1):
    return record(19, words(number) + text(path) + trailer(sample_type, 0, time))


def raw(data):
    """With its size before it, so that both together are whole words."""
    padded = data + bytes((4 - len(data)) % 8)
    return struct.pack('<I', len(padded)) + padded


def branch(source, target, flags):
    return words(source, target, flags)


def sample(fields):
    """A sample of (bit, bytes) pairs in the order in which a record has them, without their bits."""
    return record(9, b''.join(fields), MISC_USER)


def write(path, attrs, records):
    """A perf.data file of one or several events, told apart by nothing: one has samples."""
    header = 104
    data_at = header + len(attrs) * (ATTR_SIZE + 16)
    body = b''.join(records)
    with open(path, 'wb') as f:
        f.write(b'PERFILE2' + words(header, ATTR_SIZE + 16))
        f.write(words(header, len(attrs) * (ATTR_SIZE + 16)))
        f.write(words(data_at, len(body), 0, 0, 0, 0, 0, 0))
        for a in attrs:
            f.write(a + words(0, 0))
        f.write(body)
    return path
