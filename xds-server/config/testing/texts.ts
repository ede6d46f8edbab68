import { resolve } from 'node:path';
import { loadConfig } from '../load.js';
import { ConfigError, type ConfigProblem } from '../problem.js';

/** Path of a file of `testdata`. */
export const fixture = (name: string) => resolve(import.meta.dirname, '../testdata', name);

/** Problems of a text, as a file that lies beside the fixtures and `more` files. */
export function problemsOf(
  text: string,
  more: Readonly<Record<string, string>> = {},
): readonly ConfigProblem[] {
  const file = fixture('inline.yaml');
  const files = {
    [file]: text,
    [fixture('regions.csv')]: 'source,n,s\nn,0,1\ns,1,0\n',
    [fixture('bad.csv')]: 'source,n,s\nn,0\ns,1,x\n',
    [fixture('short-token')]: 'abc\n',
    ...more,
  };
  return problemsIn(() => loadConfig(file, readerOf(files)));
}

/** What is wrong with what is loaded; empty when nothing is. */
export function problemsIn(load: () => unknown): readonly ConfigProblem[] {
  try {
    load();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

/** Reads these texts, by path, and no other file. */
export function readerOf(files: Readonly<Record<string, string>>): (path: string) => string {
  return (path) => {
    const text = files[path];
    if (text === undefined) throw new Error('no such file');
    return text;
  };
}

/** As little as there has to be. */
export const minimal = `
frontends: [{id: f, region: n}]
engines: [{id: e, region: n, models: [m], profile: p, endpoints: [127.0.0.1:1]}]
profiles: {p: {requestsPerSecond: 1}}
`;
