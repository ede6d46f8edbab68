import { describe, expect, it } from 'vitest';
import type { Pool } from '../../fleet/fleet.js';
import type { LatencyKind } from './latency-samples.js';
import { type JudgedEngine, type OutlierView, OutlierWatch } from './outlier-watch.js';

const NORMAL = 0.1;

function engine(id: string, profileId = 'p', capacity = 1): JudgedEngine {
  return { id, profileId, capacity, isHeard: true };
}

function poolOf(...engineIds: string[]): Pool {
  return { id: 'm', model: 'm', needs: [], engineIds };
}

/** A fleet whose engines answer once a second, with what `seconds` gives for each; undefined: no answers. */
class World {
  readonly watch = new OutlierWatch();
  readonly engines: readonly JudgedEngine[];
  readonly pools: readonly Pool[];
  /** The most that the load of the engines explains. */
  loadExplains = NORMAL;
  /** How many times slower they must be for what they get done; undefined: as many as their answers are. */
  slowness: number | undefined;
  second = 0;

  constructor(engines: readonly JudgedEngine[], pools = [poolOf(...engines.map(({ id }) => id))]) {
    this.engines = engines;
    this.pools = pools;
  }

  run(seconds: number, observed: Readonly<Record<string, number>>, answers = 10): void {
    for (const end = this.second + seconds; this.second < end; this.second++) {
      for (const [id, observedSeconds] of Object.entries(observed)) this.answer(id, observedSeconds, answers);
      this.watch.evaluate(this.engines, this.pools, () => false, this.second * 1_000);
    }
  }

  answer(id: string, observedSeconds: number, count: number, kind: LatencyKind = 'firstToken'): void {
    this.watch.add(id, {
      ...{ atMs: this.second * 1_000, kind, count, observedSeconds },
      expectedSeconds: NORMAL,
      mostSeconds: this.loadExplains,
      slowness: this.slowness ?? Math.max(1, observedSeconds / NORMAL),
    });
  }

  view(id: string): OutlierView {
    return this.watch.views.find(({ engineId }) => engineId === id)!;
  }
}

describe('an engine that turns slow', () => {
  it('is penalised within eight seconds, with the evidence, and is back within 40 s of recovering', () => {
    const world = new World([engine('a'), engine('b'), engine('c')]);
    world.run(60, { a: NORMAL, b: NORMAL, c: NORMAL });
    expect(world.watch.views.map(({ state }) => state)).toEqual(['usual', 'usual', 'usual']);
    world.run(8, { a: NORMAL, b: 10 * NORMAL, c: NORMAL });
    expect(world.view('b')).toMatchObject({ state: 'penalised', evidence: { observedSeconds: 1 } });
    expect(world.view('b').evidence!.excess).toBeCloseTo(10, 0);
    expect(world.watch.severity('b')).toBeGreaterThan(8);
    expect(world.watch.severity('a')).toBe(1);
    world.run(40, { a: NORMAL, b: NORMAL, c: NORMAL }, 2);
    expect(world.view('b').state).toBe('usual');
  });

  it('is penalised also when it is the only one of its kind', () => {
    const world = new World([engine('a'), engine('b', 'q')]);
    world.run(60, { a: NORMAL, b: NORMAL });
    world.run(8, { a: NORMAL, b: 10 * NORMAL });
    expect(world.view('b').state).toBe('penalised');
  });

  it('is found by the times in which it alone is slow, however much slower all are than their profile in others', () => {
    const world = new World([engine('a'), engine('b'), engine('c')]);
    for (let turn = 0; turn < 20; turn++) {
      for (const id of ['a', 'b', 'c']) world.answer(id, 6 * NORMAL, 10, 'whole');
      world.run(1, { a: NORMAL, b: 4 * NORMAL, c: NORMAL });
    }
    expect(world.watch.views.map(({ state }) => state)).toEqual(['usual', 'penalised', 'usual']);
    expect(world.view('b').evidence).toMatchObject({ kind: 'firstToken', relativeExcess: 4 });
  });

  it('is found by late streams, also where it takes many times longer between tokens, but only by milliseconds', () => {
    const world = new World([engine('a'), engine('b')]);
    for (let turn = 0; turn < 20; turn++) {
      world.loadExplains = 0.0005;
      world.answer('a', 0.0005, 10, 'pace');
      world.answer('b', 0.004, 10, 'pace');
      world.loadExplains = NORMAL;
      world.run(1, { a: NORMAL, b: 4 * NORMAL });
    }
    expect(world.view('b')).toMatchObject({ state: 'penalised', evidence: { kind: 'firstToken' } });
    expect(world.view('b').severity).toBe(4);
  });

  it('is found by what it gets done, before its slow answers end', () => {
    const world = new World([engine('a'), engine('b')]);
    world.run(10, { a: NORMAL, b: NORMAL });
    const stay = { answers: 5, observedSeconds: 2, expectedSeconds: 0.2 };
    for (let second = 10; second < 14; second++) {
      world.watch.evaluate([engine('a'), { ...engine('b'), stay }], world.pools, () => false, second * 1_000);
    }
    expect(world.view('b')).toMatchObject({ state: 'penalised', evidence: { kind: 'stay' } });
    expect(world.watch.severity('b')).toBeCloseTo(10);
  });

  it('does not become usual while it is slow', () => {
    const world = new World([engine('a'), engine('b', 'q')]);
    world.run(60, { a: NORMAL, b: NORMAL });
    world.run(1_200, { a: NORMAL, b: 10 * NORMAL });
    expect(world.watch.severity('b')).toBeGreaterThan(8);
  });

  it('keeps its penalty when its load explains its slowness, and loses it when its answers are as fast as its profile says', () => {
    const world = new World([engine('a'), engine('b')]);
    world.run(60, { a: NORMAL, b: NORMAL });
    world.run(10, { a: NORMAL, b: 4 * NORMAL });
    world.loadExplains = 20 * NORMAL;
    world.run(120, { a: NORMAL, b: 4 * NORMAL });
    expect(world.view('b')).toMatchObject({ state: 'penalised', evidence: { slowness: expect.closeTo(4) } });
    expect(world.watch.severity('b')).toBeCloseTo(4);
    world.run(40, { a: NORMAL, b: NORMAL });
    expect(world.view('b').state).toBe('usual');
  });

  it.each([
    ['as fast as their profile says', 1],
    ['all slower', 2],
    ['all quicker', 0.25],
  ])(
    'keeps one severity while it is slow, however few requests its penalty leaves it: others %s',
    (_, times) => {
      const usual = times * NORMAL;
      const world = new World([engine('a'), engine('b'), engine('c')]);
      world.run(60, { a: usual, b: usual, c: usual });
      world.run(30, { a: usual, b: 15 * NORMAL, c: usual });
      const { severity, sinceMs } = world.view('b');
      expect(severity).toBeGreaterThan(4);
      for (const pauseSeconds of [3, 4, 7, 20]) {
        for (let answer = 0; answer < 30; answer++) {
          world.run(1, { a: usual, b: 15 * NORMAL, c: usual }, 1);
          world.run(pauseSeconds - 1, { a: usual, c: usual }, 1);
          expect(world.view('b')).toMatchObject({ state: 'penalised', severity, sinceMs });
        }
      }
      // It recovers, and eight answers later everybody knows.
      for (let answer = 0; answer < 8; answer++) {
        world.run(1, { a: usual, b: usual, c: usual }, 1);
        world.run(19, { a: usual, c: usual }, 1);
      }
      expect(world.view('b').state).toBe('usual');
    },
  );

  it('is compared with its like also where all of them have few requests', () => {
    const world = new World([engine('a'), engine('b'), engine('c')]);
    const slow = { a: 3 * NORMAL, b: 15 * NORMAL, c: 3 * NORMAL };
    world.run(60, { a: 3 * NORMAL, b: 3 * NORMAL, c: 3 * NORMAL });
    world.run(30, slow);
    expect(world.watch.severity('b')).toBeCloseTo(5);
    for (let answer = 0; answer < 30; answer++) {
      world.run(1, slow, 1);
      world.run(6, {});
      expect(world.watch.severity('b')).toBeCloseTo(5);
    }
  });

  it('loses its penalty when nobody has asked it anything for so long that nothing is known any more', () => {
    const world = new World([engine('a'), engine('b'), engine('c')]);
    world.run(60, { a: NORMAL, b: NORMAL, c: NORMAL });
    world.run(10, { a: NORMAL, b: 10 * NORMAL, c: NORMAL });
    world.run(420, { a: NORMAL, c: NORMAL });
    expect(world.view('b')).toMatchObject({ state: 'usual', evidence: null });
  });

  it('does not keep it for a slowness that its like have too', () => {
    const world = new World([engine('a'), engine('b'), engine('c')]);
    world.run(60, { a: NORMAL, b: NORMAL, c: NORMAL });
    world.run(10, { a: NORMAL, b: 4 * NORMAL, c: NORMAL });
    expect(world.view('b').state).toBe('penalised');
    world.run(60, { a: 3 * NORMAL, b: 3 * NORMAL, c: 3 * NORMAL });
    expect(world.view('b').state).toBe('usual');
  });

  it('keeps what it has when a penalty would cost its pool more than half', () => {
    const world = new World([engine('a', 'p', 1), engine('b', 'q', 3)]);
    world.run(60, { a: NORMAL, b: NORMAL });
    world.run(10, { a: NORMAL, b: 10 * NORMAL });
    expect(world.view('b').state).toBe('limited');
    expect(world.watch.severity('b')).toBe(1);
  });

  it('keeps the penalty that it has when another one is slower still, for which its pool has no room', () => {
    const world = new World([
      engine('a', 'p', 3),
      engine('b', 'p', 3),
      engine('c'),
      engine('d'),
      engine('e'),
    ]);
    const usual = { c: NORMAL, d: NORMAL, e: NORMAL };
    world.run(60, { ...usual, a: NORMAL, b: NORMAL });
    world.run(10, { ...usual, a: 4 * NORMAL, b: NORMAL });
    world.run(10, { ...usual, a: 4 * NORMAL, b: 10 * NORMAL });
    expect(['a', 'b'].map((id) => world.view(id).state)).toEqual(['penalised', 'limited']);
  });

  it('loses its penalty when it is down, as a restarted engine is another one', () => {
    const world = new World([engine('a'), engine('b')]);
    world.run(60, { a: NORMAL, b: NORMAL });
    world.run(10, { a: NORMAL, b: 10 * NORMAL });
    expect(world.view('b').state).toBe('penalised');
    world.watch.evaluate([engine('a'), engine('b', 'p', 0)], world.pools, () => false, 71_000);
    expect(world.view('b')).toMatchObject({ state: 'usual', evidence: null });
  });
});

describe('what is no outlier', () => {
  it('an engine that is as slow as its load explains', () => {
    const world = new World([engine('a'), engine('b')]);
    world.loadExplains = 8 * NORMAL;
    world.run(60, { a: NORMAL, b: 10 * NORMAL });
    expect(world.view('b')).toMatchObject({ state: 'usual', severity: 1 });
    expect(world.view('b').evidence!.excess).toBeCloseTo(1.25);
  });

  it('a kind of which all are slow together: that is drift, and is reported', () => {
    const world = new World([engine('a'), engine('b'), engine('c', 'q'), engine('d', 'q')]);
    world.run(60, { a: NORMAL, b: NORMAL, c: NORMAL, d: NORMAL });
    world.run(30, { a: NORMAL, b: NORMAL, c: 4 * NORMAL, d: 4 * NORMAL });
    expect(world.watch.views.map(({ state }) => state)).toEqual(['usual', 'usual', 'usual', 'usual']);
    expect(world.watch.drifts).toEqual([
      { profileId: 'q', kind: 'firstToken', factor: expect.closeTo(4, 0), sinceMs: expect.any(Number) },
    ]);
    world.run(60, { a: NORMAL, b: NORMAL, c: NORMAL, d: NORMAL });
    expect(world.watch.drifts).toEqual([]);
  });

  it('drift stays as it is while the engines of the kind may have work that nobody tells of', () => {
    const world = new World([engine('a', 'q'), engine('b', 'q')]);
    world.run(60, { a: NORMAL, b: NORMAL });
    world.run(30, { a: 4 * NORMAL, b: 4 * NORMAL });
    const { drifts } = world.watch;
    expect(drifts).toHaveLength(1);
    const unheard = ['a', 'b'].map((id) => ({ ...engine(id, 'q'), isHeard: false }));
    world.watch.evaluate(unheard, [], () => false, world.second * 1_000);
    expect(world.watch.drifts).toEqual(drifts);
  });

  it('a pool of which all engines are slow together, whatever their kinds', () => {
    const world = new World([engine('a'), engine('b', 'q')]);
    world.run(60, { a: NORMAL, b: NORMAL });
    world.run(30, { a: 5 * NORMAL, b: 5 * NORMAL });
    expect(world.watch.views.map(({ state }) => state)).toEqual(['usual', 'usual']);
  });

  it('an engine whose streams begin as late as the few that others have, however quick their whole answers are', () => {
    const world = new World([engine('a'), engine('b'), engine('c')]);
    for (let turn = 0; turn < 20; turn++) {
      for (const id of ['a', 'b', 'c']) world.answer(id, NORMAL / 5, 10, 'whole');
      world.run(1, turn % 7 === 0 ? { a: 4 * NORMAL, b: 4 * NORMAL, c: 4 * NORMAL } : { c: 4 * NORMAL }, 1);
    }
    expect(world.watch.views.map(({ state }) => state)).toEqual(['usual', 'usual', 'usual']);
    expect(world.view('c').evidence).toMatchObject({ kind: 'firstToken', relativeExcess: 1 });
  });

  it('a few slow answers among others, and answers too few to tell', () => {
    const world = new World([engine('a'), engine('b')]);
    world.run(60, { a: NORMAL, b: NORMAL });
    for (let round = 0; round < 20; round++) {
      world.run(1, { a: NORMAL, b: 20 * NORMAL });
      world.run(3, { a: NORMAL, b: NORMAL });
    }
    expect(world.view('b').state).toBe('usual');
    const quiet = new World([engine('a'), engine('b')]);
    quiet.run(60, { a: NORMAL, b: NORMAL });
    quiet.run(35, { a: NORMAL });
    quiet.run(5, { a: NORMAL, b: 20 * NORMAL }, 1);
    expect(quiet.view('b')).toMatchObject({ state: 'usual', evidence: null });
  });

  it('an engine that begins its answers late for some seconds, behind a run of long prompts, however often', () => {
    const world = new World([engine('a'), engine('b')]);
    world.run(60, { a: NORMAL, b: NORMAL });
    for (let round = 0; round < 10; round++) {
      world.run(4, { a: NORMAL, b: 8 * NORMAL });
      expect(world.view('b').state).toBe('usual');
      world.run(12, { a: NORMAL, b: NORMAL });
      expect(world.view('b').state).toBe('usual');
    }
  });

  it('an engine whose late answers one would give that is hardly slower, at its load', () => {
    const world = new World([engine('a'), engine('b')]);
    world.slowness = 1.4;
    world.run(60, { a: NORMAL, b: NORMAL });
    world.run(60, { a: NORMAL, b: 4 * NORMAL });
    expect(world.view('b')).toMatchObject({ state: 'usual', evidence: { excess: expect.closeTo(4) } });
    world.run(10, { a: NORMAL, b: 10 * NORMAL });
    expect(world.view('b').state).toBe('penalised');
  });

  it('milliseconds, however many times the profile', () => {
    const world = new World([engine('a'), engine('b')]);
    const watch = new OutlierWatch();
    for (let second = 0; second < 60; second++) {
      for (const [id, observedSeconds] of [
        ['a', 0.001],
        ['b', second < 30 ? 0.001 : 0.01],
      ] as const) {
        watch.add(id, {
          atMs: second * 1_000,
          kind: 'firstToken',
          count: 10,
          observedSeconds,
          expectedSeconds: 0.001,
          mostSeconds: 0.001,
          slowness: 1,
        });
      }
      watch.evaluate(world.engines, world.pools, () => false, second * 1_000);
    }
    expect(watch.severity('b')).toBe(1);
  });
});
