// Data that the VMs of one Envoy share: a value and a number that changes with it under each key.

import { getShared, OK, setShared } from './host';
import { RESULT, resultLength } from './memory';
import { equals, putBytes, Text } from './text';

const CAS: usize = memory.data(8, 8);
let scopeAt: usize = 0;
let scopeLength: usize = 0;

/** Names what shares the data: all keys made from now on end in it. False if that has been its name before. */
export function setScope(at: usize, length: usize): bool {
  const changed = !equals(scopeAt, scopeLength, at, length);
  scopeAt = at;
  scopeLength = length;
  return changed;
}

/** Appends the scope to a key being composed; for keys that are not worth keeping. */
export function putScope(): void {
  putBytes(scopeAt, scopeLength);
}

/** True when there is a value of at least this many bytes; it is then at `resultAt()`. */
export function readShared(key: usize, keyLength: usize, least: usize): bool {
  store<u32>(CAS, 0);
  store<u64>(RESULT, 0);
  return getShared(key, keyLength, RESULT, RESULT + 4, CAS) == OK && resultLength() >= least;
}

/** Sets the value unless somebody has since the last read of any key; one never set is always free. */
export function writeIfUnchanged(key: usize, keyLength: usize, at: usize, length: usize): bool {
  return setShared(key, keyLength, at, length, load<u32>(CAS)) == OK;
}

/** A key made once. */
export class Key {
  private at: usize;
  private length: usize;

  constructor(prefix: Text, name: string, number: u32 = 0) {
    const text = new Text(name + '/' + number.toString() + '/');
    const length = prefix.length + text.length;
    this.length = length + scopeLength;
    this.at = heap.alloc(this.length);
    memory.copy(this.at, prefix.at, prefix.length);
    memory.copy(this.at + prefix.length, text.at, text.length);
    memory.copy(this.at + length, scopeAt, scopeLength);
  }

  read(least: usize): bool {
    return readShared(this.at, this.length, least);
  }

  /** Sets the value whatever it was. */
  write(at: usize, length: usize): void {
    setShared(this.at, this.length, at, length, 0);
  }

  writeIfUnchanged(at: usize, length: usize): bool {
    return writeIfUnchanged(this.at, this.length, at, length);
  }
}
