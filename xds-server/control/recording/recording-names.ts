import { access, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { WardropError } from '../../errors.js';

// `fleet.jsonl.gz` names a set of files, each with the time at which it begins: `fleet-20260131T031200123Z.jsonl.gz`.
// Sorted by name they are in the order in which they were written.

const SUFFIX = '.jsonl.gz';
const TIME = /^\d{8}T\d{9}Z$/;

/** The file of a set that begins at a time. */
export function fileBegunAt(name: string, atMs: number): string {
  return `${stemOf(name)}-${new Date(atMs).toISOString().replace(/[-:.]/g, '')}${SUFFIX}`;
}

/** All files of a set, the oldest first. */
export async function filesOf(name: string): Promise<readonly string[]> {
  const folder = dirname(name);
  const start = `${basename(stemOf(name))}-`;
  const isOfSet = (file: string) =>
    file.startsWith(start) && file.endsWith(SUFFIX) && TIME.test(file.slice(start.length, -SUFFIX.length));
  return (await readdir(folder))
    .filter(isOfSet)
    .sort()
    .map((file) => join(folder, file));
}

/**
 * What to read for a name: the file itself, or the set that has it.
 *
 * @throws {WardropError} WARDROP_RECORDING_INVALID
 */
export async function recordingFiles(name: string): Promise<readonly string[]> {
  const isFile = await access(name).then(
    () => true,
    () => false,
  );
  if (isFile) return [name];
  const files = await filesOf(name).catch(() => []);
  if (files.length > 0) return files;
  const example = fileBegunAt(basename(name), Date.UTC(2026, 0, 31, 3, 12, 0, 123));
  throw new WardropError(
    'WARDROP_RECORDING_INVALID',
    `${name}: no such file, and no files of a recording such as ${example} beside it`,
  );
}

function stemOf(name: string): string {
  return name.endsWith(SUFFIX) ? name.slice(0, -SUFFIX.length) : name;
}
