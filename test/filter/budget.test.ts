import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { Host, type Stream, type Vm } from '../../simulator/filter-host/host.js';
import { keyHash, steerPoint } from '../../wire/hash.js';
import { deliver, sketch } from './snapshots.js';

const module = filterModule();
const FLOOR = 10;

function started(vms: number, retryRatio: number, routeRetries?: number): Vm[] {
  const host = new Host(module);
  const config = { frontendId: 'west', ...(routeRetries !== undefined && { routeRetries }) };
  const all = Array.from({ length: vms }, () => host.startVm(config));
  deliver(all[0]!, sketch([{ weight: 1, replicas: 3 }, { weight: 1 }], { pool: { retryRatio } }));
  for (const vm of all) vm.tick();
  return all;
}

function tick(vms: readonly Vm[], ms = 100): void {
  vms[0]!.host.nowMs += ms;
  for (const vm of vms) {
    vm.tick();
    if (vm.call) vm.answer(304);
  }
}

describe('the retry budget', () => {
  it('never lets more retries be used than the floor and what first attempts earned, whatever happens', () => {
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ kind: fc.constant('request' as const), vm: fc.nat(2) }) },
      {
        weight: 5,
        arbitrary: fc.record({
          kind: fc.constant('answer' as const),
          which: fc.nat(),
          attempts: fc.integer({ min: 1, max: 3 }),
        }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const), which: fc.nat() }) },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constant('tick' as const), ms: fc.integer({ min: 1, max: 500 }) }),
      },
    );
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 50, maxLength: 400 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.constantFrom(undefined, 0, 1, 2),
        (steps, ratio, routeRetries) => {
          const vms = started(3, ratio, routeRetries);
          const open: Stream[] = [];
          let firstAttempts = 0;
          let used = 0;
          for (const action of steps) {
            if (action.kind === 'tick') tick(vms, action.ms);
            else if (action.kind === 'request') {
              firstAttempts++;
              open.push(vms[action.vm]!.request({ 'x-session-id': `k${firstAttempts}` }));
            } else if (open.length > 0) {
              const [stream] = open.splice(action.which % open.length, 1);
              if (action.kind === 'answer') {
                const attempts = Math.min(action.attempts, stream!.retries + 1);
                used += attempts - 1;
                stream!.respond(attempts > 1 ? 200 : 503, { attempts });
              }
              stream!.end();
            }
            const granted = open.reduce((sum, stream) => sum + stream.retries, 0);
            expect(used + granted).toBeLessThanOrEqual(FLOOR + ratio * firstAttempts + 1e-6);
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it('earns nothing by requests that are only observed, beside others that are steered', () => {
    const vm = new Host(module).startVm({ frontendId: 'west' });
    const pool = { retryRatio: 1 };
    deliver(vm, sketch([{ weight: 1, replicas: 3 }, { weight: 1 }], { steered: 0.5, pool }));
    const keys = Array.from({ length: 400 }, (_, index) => `k${index}`);
    const isSteered = (key: string) => steerPoint(keyHash('pepper', '', key)) < 2 ** 31;
    for (const key of keys.filter((key) => !isSteered(key)).slice(0, 100)) {
      vm.request({ 'x-session-id': key }).respond(200).end();
      tick([vm]);
    }
    const steered = keys.filter(isSteered).slice(0, 30);
    const granted = steered.reduce((sum, key) => sum + vm.request({ 'x-session-id': key }).retries, 0);
    expect(granted).toBeGreaterThan(0);
    expect(granted).toBeLessThanOrEqual(FLOOR + steered.length);
  });

  it('grants nothing beyond the floor when the ratio is 0', () => {
    const vms = started(2, 0);
    let granted = 0;
    for (let i = 0; i < 200; i++) {
      const stream = vms[i % 2]!.request({ 'x-session-id': `k${i}` });
      granted += stream.retries;
      stream.respond(200, { attempts: stream.retries + 1 }).end();
      if (i % 10 === 0) tick(vms);
    }
    expect(granted).toBe(FLOOR);
  });

  it('is told to Envoy only where the route would grant another number, whatever clients say', () => {
    const telling = started(1, 0.2)[0]!;
    const silent = started(1, 0.2, 2)[0]!;
    const seen = new Set<string>();
    for (let i = 0; i < 60; i++) {
      const headers = { 'x-session-id': `k${i}`, ...(i % 3 === 0 && { 'x-envoy-max-retries': '9' }) };
      const options = { ended: i % 7 === 0 };
      const told = telling.request(headers, options).header('x-envoy-max-retries');
      expect(silent.request(headers, options).header('x-envoy-max-retries')).toBe(
        told === '2' ? undefined : told,
      );
      seen.add(told!);
    }
    expect([...seen].sort()).toEqual(['0', '2']);
  });

  it('takes back what was not used', () => {
    const vms = started(1, 0);
    for (let i = 0; i < 500; i++) {
      const stream = vms[0]!.request({ 'x-session-id': `k${i}` });
      expect(stream.retries).toBeGreaterThan(0);
      stream.respond(200).end();
      if (i % 10 === 0) tick(vms);
    }
  });

  it('covers every unanswered request of an engine that dies at 50 requests/s with 60 in flight', () => {
    const host = new Host(module);
    const vms = [host.startVm(), host.startVm()];
    deliver(vms[0]!, sketch([{ weight: 1 }, { weight: 0 }], { pool: { retryRatio: 0.1 } }));
    for (const vm of vms) vm.tick();
    const open: Stream[] = [];
    const seconds = 25;
    for (let i = 0; i < 50 * seconds; i++) {
      open.push(vms[i % 2]!.request({ 'x-session-id': `k${i}` }));
      if (open.length > 60) open.shift()!.respond(200).end();
      if (i % 5 === 0) tick(vms);
    }
    expect(open.filter((stream) => stream.retries < 1)).toEqual([]);
    for (const stream of open.splice(0)) stream.respond(200, { attempts: 2 }).end();
    for (let i = 0; i < 50; i++) {
      const stream = vms[i % 2]!.request({ 'x-session-id': `n${i}` });
      expect(stream.endpoints[0] === '10.0.1.0:8000' || stream.retries >= 1).toBe(true);
    }
  });

  it('holds at most the floor, what 30 s earn, and what the VM keeps at hand', () => {
    const vms = started(1, 0.2);
    for (let i = 0; i < 20 * 60; i++) {
      vms[0]!
        .request({ 'x-session-id': `k${i}` })
        .respond(200)
        .end();
      if (i % 2 === 0) tick(vms);
    }
    // Requests without a body reserve retries and earn none.
    let granted = 0;
    for (let i = 0; i < 500; i++)
      granted += vms[0]!.request({ 'x-session-id': `n${i}` }, { ended: true }).retries;
    expect(granted).toBeGreaterThan(110);
    // At hand: 2 and twice what a tick of late has needed, here 4.
    expect(granted).toBeLessThanOrEqual(FLOOR + 30 * 0.2 * 20 + 2 + 2 * 4);
  });

  it('earns at most 0.05 when the control server has been silent for 30 s', () => {
    const [vm] = started(1, 1);
    const retriesOf1000 = () => {
      let granted = 0;
      for (let i = 0; i < 1000; i++) {
        const stream = vm!.request({ 'x-session-id': `k${i}` });
        granted += stream.retries;
        stream.vanish();
        if (i % 10 === 0) {
          vm!.host.nowMs += 100;
          vm!.tick();
        }
      }
      return granted;
    };
    expect(retriesOf1000()).toBeGreaterThan(900);
    vm!.host.nowMs += 60_000;
    vm!.tick();
    retriesOf1000();
    const granted = retriesOf1000();
    expect(granted).toBeGreaterThan(40);
    expect(granted).toBeLessThanOrEqual(0.05 * 1000 + 1);
  });

  it("counts a client's own retries as retries: they earn nothing and take a token", () => {
    const [vm] = started(1, 0);
    for (let i = 0; i < FLOOR; i++)
      vm!.request({ 'x-session-id': 'a', 'x-stainless-retry-count': '1' }).respond(200).end();
    expect(vm!.request({ 'x-session-id': 'a' }).retries).toBe(0);
    vm!.tick();
    expect(vm!.host.metrics.get('wardrop_client_retries')).toBe(FLOOR);
  });

  it('tells a shed client that has come back not to come again when there is no budget left', () => {
    const host = new Host(module);
    const vm = host.startVm();
    deliver(vm, sketch([{ weight: 1 }], { pool: { retryRatio: 0, shedFraction: 1 } }));
    const advice = (count: string) =>
      vm
        .request({ 'x-stainless-retry-count': count })
        .reply!.headers.find(([name]) => name === 'x-should-retry')![1];
    for (let i = 0; i < FLOOR; i++) expect(advice('1')).toBe('true');
    expect(advice('2')).toBe('false');
    expect(advice('0')).toBe('true');
  });

  it('takes granted retries as used when Envoy does not tell about attempts', () => {
    const [vm] = started(1, 0);
    for (let i = 0; i < 50; i++) vm!.request({ 'x-session-id': 'a' }).vanish();
    expect(vm!.request({ 'x-session-id': 'a' }).retries).toBe(0);
  });
});
