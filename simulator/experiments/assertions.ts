import type { Measures } from '../measures/measures.js';
import type { AssertionEntry } from '../scenario-file/schema.js';
import type { Cell, Checked } from './comparison.js';
import { figure } from './figures.js';

/** Checks a scenario's assertions against what its policies did. */
export function checkAssertions(
  scenario: string,
  assertions: readonly AssertionEntry[],
  cells: readonly Cell[],
): readonly Checked[] {
  const mean = (policy: string, { measure, class: id }: AssertionEntry) => {
    const cell = cells.find((other) => other.scenario.id === scenario && other.policy === policy);
    const of = (run: Measures) => (id === undefined ? run : (run.byClass[id] as Measures));
    return cell === undefined ? undefined : (figure(cell, (run) => of(run)[measure])?.mean ?? null);
  };
  return assertions.map((assertion) => {
    const { policy, timesThatOf, beyondThatOf, atLeast, atMost } = assertion;
    const own = mean(policy, assertion);
    const other = timesThatOf ?? beyondThatOf;
    const reference = other === undefined ? 0 : mean(other, assertion);
    const text = textOf(assertion);
    if (own === undefined || reference === undefined)
      return { scenario, text, value: null, result: 'skipped' };
    // What does not apply, such as moves where nothing moved, breaks no bound.
    if (own === null || reference === null) return { scenario, text, value: null, result: 'holds' };
    const [compared, unit] = timesThatOf === undefined ? [own - reference, 1] : [own, reference];
    const holds =
      (atLeast === undefined || compared >= atLeast * unit) &&
      (atMost === undefined || compared <= atMost * unit);
    // Of nothing, nothing is any multiple.
    const value = compared === 0 && unit === 0 ? null : compared / unit;
    return { scenario, text, value, result: holds ? 'holds' : 'fails' };
  });
}

function textOf({
  policy,
  measure,
  class: id,
  timesThatOf,
  beyondThatOf,
  atLeast,
  atMost,
}: AssertionEntry): string {
  const of = (bound: number) => {
    if (timesThatOf !== undefined) return `${bound} x ${timesThatOf}`;
    if (beyondThatOf !== undefined) return `${beyondThatOf} ${bound < 0 ? '-' : '+'} ${Math.abs(bound)}`;
    return `${bound}`;
  };
  const bounds = [
    ...(atLeast === undefined ? [] : [`>= ${of(atLeast)}`]),
    ...(atMost === undefined ? [] : [`<= ${of(atMost)}`]),
  ];
  const what = id === undefined ? measure : `${measure} of ${id}`;
  return `${policy}.${what} ${bounds.join(' and ')}`;
}
