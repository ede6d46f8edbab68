import { readdirSync } from 'node:fs';
import { packageFile } from '../../xds-server/package-file.js';
import { loadScenario, type ScenarioPlan } from './load.js';

const FOLDER = ['simulator', 'scenarios'];
const END = '.yaml';

/** Names of the scenarios that come with Wardrop, in the order of the alphabet. */
export function scenarioNames(): readonly string[] {
  return readdirSync(packageFile(...FOLDER))
    .filter((name) => name.endsWith(END))
    .map((name) => name.slice(0, -END.length))
    .sort();
}

/** One of them. */
export function namedScenario(name: string, policies: readonly string[]): ScenarioPlan {
  return loadScenario(packageFile(...FOLDER, `${name}${END}`), policies);
}
