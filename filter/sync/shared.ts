// Data that the VMs of one Envoy share: a value and a number that changes with it under each key.

import { getShared, OK, setShared } from '../abi/host';
import { RESULT, resultLength } from '../abi/memory';
import { Text } from '../abi/text';
import { frontendAt, frontendLength } from '../config';

const CAS: usize = memory.data(8, 8);

/** A key of this frontend's. */
export class Key {
  private at: usize;
  private length: usize;

  constructor(name: string, number: u32 = 0) {
    const text = new Text('wardrop/' + name + '/' + number.toString() + '/');
    this.length = text.length + frontendLength;
    this.at = heap.alloc(this.length);
    memory.copy(this.at, text.at, text.length);
    memory.copy(this.at + text.length, frontendAt, frontendLength);
  }

  /** True when there is a value of at least this many bytes; it is then at `resultAt()`. */
  read(least: usize): bool {
    store<u32>(CAS, 0);
    store<u64>(RESULT, 0);
    return getShared(this.at, this.length, RESULT, RESULT + 4, CAS) == OK && resultLength() >= least;
  }

  /** Sets the value whatever it was. */
  write(at: usize, length: usize): void {
    setShared(this.at, this.length, at, length, 0);
  }

  /** Sets the value unless somebody has since the last `read` of any key; one never set is always free. */
  writeIfUnchanged(at: usize, length: usize): bool {
    return setShared(this.at, this.length, at, length, load<u32>(CAS)) == OK;
  }
}
