import { percent } from '../../percent.js';
import type { EngineView } from './overview.js';

/** What keeps an engine below its capacity, and what operators said of that, in words. */
export function engineRemarks({
  state,
  measuredShare,
  isLeftOut,
  drainedReplicas,
  penaltyOrder,
  lastResortOf,
  keptFor,
}: EngineView): readonly string[] {
  const { health, ramp, drain, penalty, latencyFactor } = state;
  const left = health / measuredShare;
  const isKept = lastResortOf.length === 0 && keptFor.length > 0 && state.replicas.some(({ ready }) => ready);
  return [
    ...(isLeftOut ? ['left out after failures'] : []),
    ...(lastResortOf.length === 0
      ? []
      : [`lost or drained, and kept for pools with nobody else: not for ${lastResortOf.join(', ')}`]),
    ...(isKept ? [`seems lost, and is kept for pools with nobody else: ${keptFor.join(', ')}`] : []),
    ...(measuredShare === 1 ? [] : [`gets done ${percent(measuredShare, 0)} of its profile`]),
    ...(left > 0.999 ? [] : [`${percent(1 - left, 0)} taken by work from elsewhere`]),
    ...(ramp === 1 ? [] : [`starting, at ${percent(ramp, 0)}`]),
    ...(drain === 1 ? [] : [drain === 0 ? 'drained' : `draining, at ${percent(drain, 0)}`]),
    ...(drainedReplicas === 0 ? [] : [`${drainedReplicas} of its replicas drained`]),
    ...(penalty === 0 ? [] : [`penalty ${percent(penalty, 0)}, ${latencyFactor.toFixed(1)} times as slow`]),
    ...(penaltyOrder === null ? [] : [orderText(penaltyOrder)]),
  ];
}

function orderText({ kind, untilMs }: NonNullable<EngineView['penaltyOrder']>): string {
  const until = `until ${new Date(untilMs).toISOString()}, by an operator`;
  return kind === 'hold' ? `penalty held ${until}` : `no penalty ${until}`;
}
