type Shape = (value: unknown) => boolean;

const isNumber: Shape = (value) => Number.isFinite(value);
const isText: Shape = (value) => typeof value === 'string';
const isAny: Shape = () => true;

/** A mapping that has these keys, and maybe others. */
function mapping(shapes: Readonly<Record<string, Shape>>): Shape {
  return (value) => {
    if (typeof value !== 'object' || value === null) return false;
    return Object.entries(shapes).every(([key, shape]) => shape((value as Record<string, unknown>)[key]));
  };
}

function listOf(shape: Shape): Shape {
  return (value) => Array.isArray(value) && value.every(shape);
}

const named = listOf(mapping({ id: isText }));
const numbers = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, isNumber]));

/** As far as everything that reads recordings relies on it; numbers may be wrong, and then plans differ. */
const SHAPES: Readonly<Record<string, Shape>> = {
  atMs: isNumber,
  fleet: mapping({ frontends: named, engines: named, pools: named, networkSeconds: listOf(listOf(isAny)) }),
  engines: listOf(mapping({ id: isText, replicas: listOf(mapping({ address: isText })) })),
  demands: listOf(
    mapping({
      ...{ frontendId: isText, poolId: isText },
      ...numbers('requestsPerSecond', 'promptTokens', 'uncachedPromptTokens', 'outputTokens'),
      ...numbers('followUpShare', 'turnGapSeconds'),
    }),
  ),
  profiles: listOf(
    mapping({ 0: isText, 1: mapping({ work: mapping({}), ttft: mapping({}), tbot: mapping({}) }) }),
  ),
  policy: mapping({
    ...numbers('targetUtilization', 'maxUtilization', 'egressSecondsPerDollar'),
    ...{
      retries: mapping(numbers('max', 'min')),
      bounds: listOf(mapping({})),
      minShares: listOf(mapping({})),
    },
  }),
};

/** The first part of a recorded solve that has another form than any solve; undefined for a whole one. */
export function misshapen(parts: Readonly<Record<string, unknown>>): string | undefined {
  return Object.keys(SHAPES).find((name) => !SHAPES[name]!(parts[name]));
}
