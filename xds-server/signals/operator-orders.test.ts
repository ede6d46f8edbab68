import { describe, expect, it } from 'vitest';
import type { Fleet } from '../fleet/fleet.js';
import { OperatorOrders, type OperatorRequest } from './operator-orders.js';

const fleet = {
  engines: [
    { id: 'a', endpoints: ['10.0.0.1:80', '10.0.0.2:80'] },
    { id: 'b', endpoints: ['10.0.0.3:80'] },
  ],
} as unknown as Fleet;

function act(
  orders: OperatorOrders,
  request: Omit<OperatorRequest, 'by'>,
  nowMs = 0,
  isPenalised = false,
): void {
  orders.act({ ...request, by: 'me' }, fleet, () => isPenalised, nowMs);
}

describe('operator orders', () => {
  it('drain an engine in four steps, until they are taken back', () => {
    const orders = new OperatorOrders();
    act(orders, { action: 'drain', target: 'a', overSeconds: 40 });
    const factors = [0, 9, 10, 20, 39, 40, 1_000].map((second) => orders.drainFactor('a', second * 1_000));
    expect(factors).toEqual([0.75, 0.75, 0.5, 0.25, 0, 0, 0]);
    expect(orders.drainFactor('b', 0)).toBe(1);
    act(orders, { action: 'undrain', target: 'a' });
    expect(orders.drainFactor('a', 1_000_000)).toBe(1);
    expect(orders.state.actions.map(({ action, target }) => [action, target])).toEqual([
      ['drain', 'a'],
      ['undrain', 'a'],
    ]);
  });

  it('drain an engine further that is drained again: it does not come back first', () => {
    const orders = new OperatorOrders();
    act(orders, { action: 'drain', target: 'a', overSeconds: 40, forSeconds: 60 });
    act(orders, { action: 'drain', target: 'a', overSeconds: 40, forSeconds: 60 }, 30_000);
    expect([30, 40].map((second) => orders.drainFactor('a', second * 1_000))).toEqual([0, 0]);
    orders.expire(fleet, 89_999);
    expect(orders.drainFactor('a', 89_999)).toBe(0);
  });

  it('drain an engine by the clock of another control server, which may be ahead', () => {
    const orders = new OperatorOrders();
    act(orders, { action: 'drain', target: 'a', overSeconds: 40 }, 3_600_000);
    const factors = [0, 3_590, 3_600, 3_620].map((second) => orders.drainFactor('a', second * 1_000));
    expect(factors).toEqual([0.75, 0.75, 0.75, 0.25]);
  });

  it('drain a replica at once and leave its engine alone', () => {
    const orders = new OperatorOrders();
    act(orders, { action: 'drain', target: '10.0.0.2:80' });
    expect(orders.isReplicaDrained('10.0.0.2:80')).toBe(true);
    expect(orders.isReplicaDrained('10.0.0.1:80')).toBe(false);
    expect(orders.drainFactor('a', 1_000)).toBe(1);
  });

  it('end by themselves, or with what they are about', () => {
    const orders = new OperatorOrders();
    act(orders, { action: 'drain', target: 'a', overSeconds: 0, forSeconds: 60 });
    act(orders, { action: 'release-penalty', target: 'b', forSeconds: 600 });
    orders.expire(fleet, 59_999);
    expect(orders.drainFactor('a', 59_999)).toBe(0);
    orders.expire(fleet, 60_000);
    expect(orders.drainFactor('a', 60_000)).toBe(1);
    expect(orders.order('b')).toBe('release');
    orders.expire({ ...fleet, engines: [] }, 61_000);
    expect(orders.state.orders).toEqual([]);
  });

  it('go on where they were after a restart', () => {
    const before = new OperatorOrders();
    act(before, { action: 'drain', target: 'a', overSeconds: 40 });
    act(before, { action: 'hold-penalty', target: 'b' }, 0, true);
    const after = new OperatorOrders();
    after.resume(before.state);
    expect(after.state).toEqual(before.state);
    expect(after.drainFactor('a', 10_000)).toBe(0.5);
    expect(after.order('b')).toBe('hold');
  });

  it.each([
    [{ action: 'drain', target: 'c' }, /no engine or replica "c"; engines: a, b/],
    [{ action: 'undrain', target: 'a' }, /a is not drained/],
    [{ action: 'hold-penalty', target: 'a' }, /engine a has no penalty/],
    [{ action: 'release-penalty', target: '10.0.0.3:80' }, /penalties are of engines; name b/],
  ] as const)('refuse %j, and change nothing', (request, reason) => {
    const orders = new OperatorOrders();
    expect(() => act(orders, request)).toThrowError(reason);
    expect(orders.state).toEqual({ drains: [], orders: [], actions: [] });
  });
});
