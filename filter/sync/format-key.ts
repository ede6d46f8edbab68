import { DISPLACED_FORMAT, REPORT_FORMAT, SNAPSHOT_FORMAT } from '../../wire/layout';
import { Key } from '../abi/shared';
import { Text } from '../abi/text';

const PREFIX = new Text(
  'wardrop/' +
    SNAPSHOT_FORMAT.toString() +
    '.' +
    REPORT_FORMAT.toString() +
    '.' +
    DISPLACED_FORMAT.toString() +
    '/',
);

/**
 * A key that only filters with the same formats share. After an upgrade, one with others lives on while requests
 * still use it; it could neither be understood nor call in the name of all.
 */
export function formatKey(name: string, number: u32 = 0): Key {
  return new Key(PREFIX, name, number);
}
