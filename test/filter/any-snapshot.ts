import fc from 'fast-check';
import {
  bodyFeatures,
  type NeedCondition,
  type SnapshotEngine,
  type SnapshotModel,
  type SnapshotPool,
  type SnapshotView,
} from '../../wire/snapshot-view.js';

const visible = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  minLength: 1,
  maxLength: 12,
});
const share = fc.double({ min: 0, max: 1, noNaN: true }).map((value) => value + 0);
const modelName = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
  .filter((name) => !/\p{Cc}|\p{Surrogate}/u.test(name));

/** What is left out where it says nothing. */
const overflow = fc.option(
  share.filter((value) => value > 0),
  { nil: undefined },
);
const priority = fc.integer({ min: -100, max: 100 });

/** Leaves out keys without a value. */
function written<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined)) as T;
}

const requests = fc.double({ min: 0, max: 1e6, noNaN: true }).map((value) => value + 0);

const engine: fc.Arbitrary<SnapshotEngine> = fc
  .record({
    id: visible,
    overflow,
    replicaLimit: fc.option(requests, { nil: undefined }),
    busyAbove: fc.option(requests, { nil: undefined }),
    probePath: fc.option(
      visible.map((path) => `/${path}`),
      { nil: undefined },
    ),
    replicas: fc.uniqueArray(
      fc
        .record({
          address: fc
            .tuple(fc.ipV4(), fc.integer({ min: 1, max: 65535 }))
            .map(([ip, port]) => `${ip}:${port}`),
          ready: fc.boolean(),
          overflow,
        })
        .map(written),
      { maxLength: 4, selector: (replica) => replica.address },
    ),
  })
  .map((entry) => written(entry) as SnapshotEngine);

const otherClasses = fc.option(
  fc
    .uniqueArray(
      fc.record({
        priority: priority.filter((value) => value !== 0),
        retryRatio: share,
        shedFraction: share,
      }),
      { minLength: 1, maxLength: 3, selector: (entry) => entry.priority },
    )
    .map((list) => list.sort((a, b) => b.priority - a.priority)),
  { nil: undefined },
);

function pool(engineCount: number): fc.Arbitrary<SnapshotPool> {
  const eligible = engineCount === 0 ? fc.constant([]) : fc.subarray([...Array(engineCount).keys()]);
  return eligible.chain((engines) =>
    fc
      .record({
        id: visible,
        cluster: visible,
        engines: fc.constant(engines),
        segments: segments(engines),
        retryRatio: share,
        shedFraction: share,
        otherClasses,
      })
      .map((entry) => written(entry) as SnapshotPool),
  );
}

function segments(engines: readonly number[]): fc.Arbitrary<SnapshotPool['segments']> {
  if (engines.length === 0) return fc.constant([]);
  const cuts = fc.uniqueArray(fc.integer({ min: 1, max: 2 ** 32 - 1 }), { maxLength: 8 });
  return cuts.chain((starts) =>
    fc.tuple(
      ...[0, ...starts.sort((a, b) => a - b)].map((start) =>
        fc
          .tuple(fc.constantFrom(...engines), fc.constantFrom(-1, ...engines))
          .map(([owner, backup]) => ({ start, owner, backup: backup === owner ? -1 : backup })),
      ),
    ),
  );
}

const headerName = fc.constantFrom('x-data-residency', 'x-compute', 'x-tier');
const condition: fc.Arbitrary<NeedCondition> = fc.oneof(
  fc.record({ kind: fc.constant('header' as const), name: headerName }),
  fc.record({ kind: fc.constant('header' as const), name: headerName, value: modelName }),
  fc.record({ kind: fc.constant('path' as const), prefix: visible }),
  fc.record({ kind: fc.constant('tenant' as const), value: modelName }),
  fc.record({ kind: fc.constant('body' as const), feature: fc.constantFrom(...bodyFeatures) }),
  fc.record({
    kind: fc.constantFrom('promptTokens' as const, 'totalTokens' as const),
    above: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  }),
  fc.record({ kind: fc.constant('serviceTier' as const), value: modelName }),
  fc.record({ kind: fc.constant('priority' as const), above: fc.integer({ min: 0, max: 2 ** 32 - 1 }) }),
);
const anyNeeds = fc.uniqueArray(fc.record({ id: visible, when: condition }), {
  maxLength: 4,
  selector: (need) => need.id,
});

function model(needCount: number, poolCount: number): fc.Arbitrary<SnapshotModel> {
  return fc.tuple(modelName, fc.subarray([...Array(needCount).keys()])).chain(([name, needs]) => {
    const combinations = 2 ** needs.length;
    const pools = fc.array(fc.integer({ min: -1, max: poolCount - 1 }), {
      minLength: combinations,
      maxLength: combinations,
    });
    return pools.map((list) => ({
      name,
      pool: list[0]!,
      ...(needs.length > 0 && { needs, pools: list }),
    }));
  });
}

function someOf<T>(entry: fc.Arbitrary<T>): fc.Arbitrary<T[] | undefined> {
  return fc.option(fc.array(entry, { minLength: 1, maxLength: 4 }), { nil: undefined });
}

/** Any view that may be written, models sorted by name; for property tests of both sides of the wire. */
export const anySnapshot: fc.Arbitrary<SnapshotView> = fc
  .tuple(fc.uniqueArray(engine, { maxLength: 5, selector: (item) => item.id }), anyNeeds)
  .chain(([engines, needs]) =>
    fc.uniqueArray(pool(engines.length), { maxLength: 4, selector: (item) => item.id }).chain((pools) =>
      fc
        .record({
          version: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
          planId: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((id) => id.toString(16).padStart(16, '0')),
          issuedAtMs: fc.integer({ min: 0, max: 2 ** 42 }),
          frontendId: visible,
          salt: modelName,
          models: fc
            .uniqueArray(model(needs.length, pools.length), { maxLength: 5, selector: (item) => item.name })
            .map((models) => models.sort((a, b) => (a.name < b.name ? -1 : 1))),
          pools: fc.constant(pools),
          engines: fc.constant(engines),
          steered: fc.option(
            share.filter((value) => value < 1),
            { nil: undefined },
          ),
          classRules:
            needs.length === 0
              ? fc.constant(undefined)
              : someOf(fc.record({ need: fc.integer({ min: 0, max: needs.length - 1 }), priority })),
          nearest:
            engines.length === 0
              ? fc.constant(undefined)
              : someOf(fc.integer({ min: 0, max: engines.length - 1 })),
        })
        .map((view) => written({ ...view, ...(needs.length > 0 && { needs }) }) as SnapshotView),
    ),
  );
