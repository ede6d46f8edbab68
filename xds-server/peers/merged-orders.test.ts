import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Fleet } from '../fleet/fleet.js';
import { OPERATOR_ACTIONS, type Orders } from '../fleet/operations.js';
import { OperatorOrders } from '../signals/operator-orders.js';
import { mergedOrders } from './merged-orders.js';

const fleet = {
  engines: [
    { id: 'a', endpoints: ['10.0.0.1:8000'] },
    { id: 'b', endpoints: ['10.0.0.2:8000'] },
  ],
} as unknown as Fleet;
const none: Orders = { drains: [], orders: [], actions: [] };

interface Step {
  readonly server: 0 | 1;
  readonly action: (typeof OPERATOR_ACTIONS)[number];
  readonly target: string;
  /** Whether the servers hear of each other after it. */
  readonly isHeard: boolean;
}

const step: fc.Arbitrary<Step> = fc.record({
  server: fc.constantFrom(0 as const, 1 as const),
  action: fc.constantFrom(...OPERATOR_ACTIONS),
  target: fc.constantFrom('a', 'b', '10.0.0.1:8000'),
  isHeard: fc.boolean(),
});

function act(server: OperatorOrders, { action, target }: Step, nowMs: number): void {
  try {
    server.act({ action, target, by: 'me' }, fleet, () => true, nowMs);
  } catch {
    // Nobody can undo what is not ordered.
  }
}

function exchange(servers: readonly [OperatorOrders, OperatorOrders]): void {
  const [one, other] = servers.map(({ state }) => state) as [Orders, Orders];
  servers[0].resume(mergedOrders(one, other));
  servers[1].resume(mergedOrders(other, one));
}

it('of each target, what was ordered last holds on both servers, whichever was told of it', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const servers = [new OperatorOrders(), new OperatorOrders()] as const;
      for (const [at, each] of steps.entries()) {
        act(servers[each.server], each, 1_000 * (at + 1));
        if (each.isHeard) exchange(servers);
      }
      exchange(servers);
      const [one, other] = servers.map(({ state }) => state) as [Orders, Orders];
      expect(one).toEqual(other);
      expect(mergedOrders(one, other)).toEqual(one);
      for (const target of ['a', 'b', '10.0.0.1:8000']) {
        const last = one.actions.findLast(
          (action) => action.target === target && ['drain', 'undrain'].includes(action.action),
        );
        const isDrained = one.drains.some(({ engineId, address }) => (address ?? engineId) === target);
        expect(isDrained).toBe(last?.action === 'drain');
      }
    }),
  );
});

const sorted = ({ drains, orders }: Orders) =>
  [...drains, ...orders].map((entry) => JSON.stringify(entry)).sort();

it('what was ordered last holds however wrong the clock of a server is, where the others have heard what was ordered before', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 20 }),
      fc.tuple(fc.integer({ min: -3_600_000, max: 3_600_000 }), fc.constant(0)),
      (steps, wrongMs) => {
        const servers = [new OperatorOrders(), new OperatorOrders()] as const;
        for (const [at, { server, action, target }] of steps.entries()) {
          const asked = servers[server];
          act(asked, { server, action, target, isHeard: true }, 10_000_000 + 1_000 * at + wrongMs[server]);
          const inForce = sorted(asked.state);
          exchange(servers);
          expect(servers.map(({ state }) => sorted(state))).toEqual([inForce, inForce]);
        }
      },
    ),
  );
});

it('does not depend on who merges, or how often', () => {
  const ordersOf = (steps: readonly Step[], fromMs: number) => {
    const orders = new OperatorOrders();
    for (const [at, each] of steps.entries()) act(orders, each, fromMs + 1_000 * at);
    return orders.state;
  };
  const steps = fc.array(step, { maxLength: 8 });
  fc.assert(
    fc.property(steps, steps, (mine, theirs) => {
      const [a, b] = [ordersOf(mine, 1_000), ordersOf(theirs, 1_500)];
      const merged = mergedOrders(a, b);
      expect(mergedOrders(b, a)).toEqual(merged);
      expect(mergedOrders(merged, b)).toEqual(merged);
      expect(mergedOrders(merged, none)).toEqual(merged);
    }),
  );
});
