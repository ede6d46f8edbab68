import { type ErrorCode, WardropError } from '../errors.js';

/** Keys and list indexes from the root of a document to a value. */
export type Path = readonly (string | number)[];

/** One thing that is wrong with a configuration, and where. Lines and columns count from 1. */
export interface ConfigProblem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** Such as `engines[0].region`; empty for the whole document. */
  readonly path: string;
  readonly message: string;
  readonly hint?: string;
}

/** Of a file that is wrong in every line, the first problems say it. */
export const MOST_TOLD = 100;

/** All problems of a configuration at once. */
export class ConfigError extends WardropError {
  readonly problems: readonly ConfigProblem[];

  constructor(code: ErrorCode, problems: readonly ConfigProblem[]) {
    const more = problems.length - MOST_TOLD;
    const lines = problems.slice(0, MOST_TOLD).map(formatProblem);
    super(code, (more > 0 ? [...lines, `and ${more} more`] : lines).join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** `fleet.yaml:3:5: engines[0].regoin: unknown key (did you mean "region"?)` */
export function formatProblem(problem: ConfigProblem): string {
  const where = `${problem.file}:${problem.line}:${problem.column}: `;
  const path = problem.path === '' ? '' : `${problem.path}: `;
  return `${where}${path}${problem.message}${problem.hint === undefined ? '' : ` (${problem.hint})`}`;
}

export function formatPath(path: Path): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[A-Za-z_][\w-]*$/.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}
