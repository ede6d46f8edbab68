import { percent } from '../../percent.js';
import type { EngineTraffic, FrontendTraffic } from '../../signals/usage/recent-traffic.js';

/** Above this share of failures something is wrong. */
const ODD_FAILURES = 0.02;

/**
 * Cells of a frontend's traffic: offered per second, refused, failed, first token, whole answer. A control server of before
 * an upgrade tells of none.
 */
export function frontendCells(traffic: FrontendTraffic | undefined): readonly string[] {
  if (traffic === undefined) return ['', '', '', '', ''];
  const { offeredPerSecond, refusedShare, failedShare } = traffic;
  return [
    offeredPerSecond.toFixed(1),
    shareText(refusedShare),
    shareText(failedShare),
    ...latencies(traffic),
  ];
}

/** Cells of an engine's traffic: requests and failed attempts per second, 4xx, first token, whole answer. */
export function engineCells(traffic: EngineTraffic | undefined): readonly string[] {
  if (traffic === undefined) return ['', '', '', '', ''];
  const { endedPerSecond, failuresPerSecond, rejectedShare } = traffic;
  return [
    ...[endedPerSecond.toFixed(1), failuresPerSecond.toFixed(1), shareText(rejectedShare)],
    ...latencies(traffic),
  ];
}

export function isFailing(traffic: EngineTraffic | undefined): boolean {
  return traffic !== undefined && traffic.failuresPerSecond > ODD_FAILURES * traffic.endedPerSecond;
}

export function isFailingClients({ failedShare }: FrontendTraffic): boolean {
  return (failedShare ?? 0) > ODD_FAILURES;
}

function latencies({ firstTokenSeconds, wholeSeconds }: EngineTraffic | FrontendTraffic): readonly string[] {
  return [latencyText(firstTokenSeconds), latencyText(wholeSeconds)];
}

function shareText(share: number | null): string {
  return share === null ? '–' : percent(share);
}

function latencyText(seconds: number | null): string {
  return seconds === null ? '–' : `${(1_000 * seconds).toFixed(0)} ms`;
}
