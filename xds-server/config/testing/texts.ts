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
  const files: Record<string, string> = {
    [file]: text,
    [fixture('regions.csv')]: 'source,n,s\nn,0,1\ns,1,0\n',
    [fixture('bad.csv')]: 'source,n,s\nn,0\ns,1,x\n',
    [fixture('short-token')]: 'abc\n',
    ...more,
  };
  try {
    loadConfig(file, (path) => {
      const content = files[path];
      if (content === undefined) throw new Error('no such file');
      return content;
    });
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

/** As little as there has to be. */
export const minimal = `
frontends: [{id: f, region: n}]
engines: [{id: e, region: n, models: [m], profile: p, endpoints: [127.0.0.1:1]}]
profiles: {p: {requestsPerSecond: 1}}
`;
