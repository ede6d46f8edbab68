import { expect, it } from 'vitest';
import { id64 } from '../../../wire/hash.js';
import { noPoolUsage, noVmUsage } from '../../../wire/usage-report.js';
import { encodeUsageReport } from '../../../wire/usage-report-writer.js';
import { loadConfig } from '../../config/load.js';
import type { Peers } from '../../peers/peers.js';
import { Signals } from '../../signals/signals.js';
import type { Intake } from './intake.js';
import { PeerIntake } from './peer-intake.js';

function configOf(engines: readonly string[]) {
  const list = engines.map((id, at) => ({ id, region: 'r', models: ['m'], endpoints: [`10.0.0.${at}:80`] }));
  const text = JSON.stringify({ frontends: [{ id: 'f', region: 'r' }], engines: list });
  return loadConfig('/none/fleet.yaml', () => text);
}

function started(signals: Signals, now = () => 1_000) {
  let taken = 0;
  const intake = new PeerIntake({
    peers: { isAlone: false, envoys: () => [], unheard: () => [] } as unknown as Peers,
    intake: {
      acceptReport: (frontendId, nodeId, report) => signals.acceptReport(frontendId, nodeId, report, now()),
    } as Intake,
    signals,
    sync: { addDisplaced: () => undefined },
    isFrontend: (id) => id === 'f',
    log: { info: () => undefined },
    onOrders: () => taken++,
    now,
  });
  return { intake, taken: () => taken };
}

it('orders at a peer are taken once, and those about engines that are not here when they come', () => {
  const signals = new Signals(configOf(['a']), [], 0);
  const peer = new Signals(configOf(['a', 'b']), [], 0);
  const { intake, taken } = started(signals);
  for (const target of ['a', 'b']) peer.act({ action: 'drain', target, by: 'me' }, 500);
  for (let time = 0; time < 3; time++) intake.acceptOrders(peer.orders);
  expect(taken()).toBe(1);
  expect(signals.orders.drains.map(({ engineId }) => engineId)).toEqual(['a']);
  signals.reconfigure(configOf(['a', 'b']), 1_000);
  intake.acceptOrders(peer.orders);
  expect(signals.orders.drains.map(({ engineId }) => engineId)).toEqual(['a', 'b']);
});

it('reports that cannot be read are told of until the Envoy is gone', () => {
  const { intake } = started(new Signals(configOf(['a']), [], 0));
  const told = { kind: 'report', frontendId: 'f', nodeId: 'n', bytes: new Uint8Array(3) } as const;
  intake.acceptReport({ ...told, frontendId: 'g' });
  expect(intake.unread.size).toBe(0);
  intake.acceptReport(told);
  expect([...intake.unread.keys()]).toEqual(['n']);
  intake.look(1_000);
  expect(intake.unread.size).toBe(0);
});

it('reports that waited for a peer which did not run count for all of that time', () => {
  const signals = new Signals(configOf(['a']), [], 0);
  let nowMs = 0;
  const { intake } = started(signals, () => nowMs);
  let sequence = 0;
  /** Returns the demand that is seen then. */
  const tell = (atMs: number, offered: number) => {
    nowMs = atMs;
    const vm = { ...noVmUsage(7n, ++sequence), pools: [{ ...noPoolUsage(id64('m')), offered }] };
    const bytes = encodeUsageReport({ vms: [vm] });
    intake.acceptReport({ kind: 'report', frontendId: 'f', nodeId: 'n', bytes });
    return signals.evaluate(nowMs).state.demands[0]!.requestsPerSecond;
  };
  for (let second = 0; second <= 60; second++) tell(second * 1_000, 40 * second);
  nowMs = 70_000;
  intake.noteHoldUp();
  tell(70_050, 40 * 61);
  const seen = [tell(70_300, 40 * 70.3), tell(71_300, 40 * 71.3)];
  for (const demand of seen) expect(Math.abs(demand - 40)).toBeLessThan(1);
});

it('signals that knew before a restart that not everything was heard are told that it is now', () => {
  const before = new Signals(configOf(['a']), [], 0);
  before.notePartial(true, 0);
  const signals = new Signals(configOf(['a']), [], 0);
  signals.restore(before.save());
  started(signals).intake.look(1_000);
  expect(signals.isPartial).toBe(false);
});
