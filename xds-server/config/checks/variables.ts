import { variableHint } from '../document/variables.js';
import type { Path } from '../problem.js';
import type { Draft, Findings } from './findings.js';

/** No text stands for a variable: as a token, its very name would be the secret. */
export function checkVariables(config: Draft, found: Findings): void {
  visit(config, [], (path, text) => {
    const hint = variableHint(text);
    if (hint !== undefined && !found.isFaulty(path)) found.problem(path, 'this is a variable', { hint });
  });
}

function visit(value: unknown, path: Path, seen: (path: Path, text: string) => void): void {
  if (typeof value === 'string') seen(path, value);
  else if (Array.isArray(value)) for (const [at, item] of value.entries()) visit(item, [...path, at], seen);
  else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) visit(item, [...path, key], seen);
  }
}
