import { describe, expect, it } from 'vitest';
import type { Scenario } from '../scenario.js';
import { endpointPicker } from './endpoint-picker.js';
import type { EnginePage, Policy, PolicyContext, RoutedRequest } from './policy.js';

const idle: EnginePage = { waiting: 0, kvUse: 0 };

function picker(pages: readonly EnginePage[], ready = pages.map(() => true)): Policy {
  const scenario = {
    frontends: [{}],
    engines: pages.map(() => ({})),
    pools: [{ eligible: pages.map(() => true) }],
    rttMs: [pages.map(() => 1)],
  } as unknown as Scenario;
  const local = { inFlight: [], ready: [ready], pages: [pages] };
  return endpointPicker({ scenario, seed: 1, local } as unknown as PolicyContext) as Policy;
}

const turn = (conversation: object, promptTokens: number) =>
  ({ frontend: 0, pool: 0, conversation, promptTokens }) as unknown as RoutedRequest;

describe('the endpoint picker', () => {
  it('takes the engine with most free memory, and of equals any', () => {
    const { decide } = picker([{ waiting: 0, kvUse: 0.3 }, { waiting: 0, kvUse: 0.1 }, idle]);
    expect(decide(turn({}, 100), 0)).toEqual([2, 1]);
    const equal = picker([idle, idle, idle]);
    const firsts = Array.from({ length: 30 }, () => (equal.decide(turn({}, 100), 0) as number[])[0]);
    expect(new Set(firsts).size).toBe(3);
  });

  it('keeps a conversation where most of its prompt was sent, unless memory and queue say otherwise by more', () => {
    const pages = [idle, idle, { waiting: 0, kvUse: 0.2 }];
    const { decide } = picker(pages);
    const conversation = {};
    const [first] = decide(turn(conversation, 100), 0) as number[];
    pages[first!] = { waiting: 0, kvUse: 0.9 };
    expect((decide(turn(conversation, 120), 0) as number[])[0]).toBe(first);
    pages[first!] = { waiting: 4, kvUse: 0.9 };
    expect((decide(turn(conversation, 140), 0) as number[])[0]).not.toBe(first);
  });

  it('tries engines that are not ready after all others', () => {
    const pages = [idle, { waiting: 3, kvUse: 0.5 }, { waiting: 9, kvUse: 0.9 }];
    expect(picker(pages, [false, true, true]).decide(turn({}, 100), 0)).toEqual([1, 2]);
    expect(picker(pages, [false, true, false]).decide(turn({}, 100), 0)).toEqual([1, 0]);
  });
});
