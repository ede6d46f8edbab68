import type { Scenario, ScenarioRow } from '../scenario.js';

/**
 * Engines to choose among, `[frontend][pool]`: those that may serve the pool and that the frontend has a way to; where it
 * has a way to none, all that may serve.
 */
export function choicesOf({ frontends, pools, rttMs }: Scenario): number[][][] {
  return frontends.map((_, frontend) =>
    pools.map(({ eligible }) => {
      const serving = eligible.flatMap((isEligible, engine) => (isEligible ? [engine] : []));
      const reached = serving.filter((engine) => rttMs[frontend]![engine]! < Number.POSITIVE_INFINITY);
      return reached.length > 0 ? reached : serving;
    }),
  );
}

/** Nominal capacity by engine, 0 for those that are no choice, `[frontend][pool][engine]`. */
export function capacitiesOf(scenario: Scenario): number[][][] {
  return choicesOf(scenario).map((rows) =>
    rows.map((choices) =>
      scenario.engines.map(({ nominalRps }, engine) => (choices.includes(engine) ? nominalRps : 0)),
    ),
  );
}

/** Envoy's own default: one retry. With more, policies without a budget do worse where engines are full. */
export const MOST_ATTEMPTS = 2;

/** Engines to try in turn: each once, those that are ready before the others. */
export function inTurn(engines: readonly number[], ready: readonly boolean[]): number[] {
  const each = [...new Set(engines)];
  const others = each.filter((engine) => !ready[engine]);
  return [...readyOf(each, ready), ...others].slice(0, MOST_ATTEMPTS);
}

/** Those of the choices that are ready. */
export function readyOf(choices: readonly number[], ready: readonly boolean[]): number[] {
  return choices.filter((engine) => ready[engine]);
}

/** What a table of rows has for one. */
export function rowOf<T>(table: readonly (readonly T[])[], { frontend, pool }: ScenarioRow): T {
  return table[frontend]![pool]!;
}
