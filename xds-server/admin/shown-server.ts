import type { Config } from '../config/config.js';
import type { Alarms } from '../control/alarms/alarms.js';
import type { FilterRun } from '../control/questions/filter-run.js';
import type { Questions } from '../control/questions/questions.js';
import type { Recorders } from '../control/recording/recorders.js';
import type { Solution } from '../optimizer/index.js';
import type { Peers, PeerView } from '../peers/peers.js';
import type { Plan } from '../plan/plan.js';
import type { Relief } from '../plan/protection/relief.js';
import type { Discovered } from '../signals/discovery/discovery.js';
import type { OperatorRequest } from '../signals/operator-orders.js';
import type { LoadSources } from '../signals/pages/engine-load.js';
import type { EngineWatch } from '../signals/pages/engine-watch.js';
import type { Signals, SignalsView } from '../signals/signals.js';
import type { SnapshotBoard } from '../sync/snapshot-board.js';
import type { NodeView, ResourceStatus } from '../xds/index.js';

/** What API and metrics show of a control server, and what they may ask of it. */
export interface ShownServer {
  readonly startedAtMs: number;
  readonly config: Config;
  /** The plan in force, once it is published. */
  readonly plan: Plan | null;
  /** Of the last good solve; undefined before the first, and while another control server makes the plans. */
  readonly solution: Pick<Solution, 'mixErrorSeconds' | 'rows'> | undefined;
  /** How the fleet looked lately. */
  readonly view: SignalsView;
  readonly relief: Relief;
  readonly discovered: ReadonlyMap<string, Discovered>;
  readonly loadSources: LoadSources;
  readonly alarms: Pick<Alarms, 'list'>;
  readonly signals: Pick<
    Signals,
    'classAverages' | 'health' | 'inFlight' | 'orders' | 'requestSizes' | 'totals' | 'traffic' | 'turnGap'
  >;
  readonly board: Pick<SnapshotBoard, 'current' | 'holders'>;
  readonly engineWatch: Pick<EngineWatch, 'readings'>;
  readonly questions: Pick<Questions, 'changes' | 'explain' | 'headroom' | 'whatIf'>;
  readonly recorders: Pick<Recorders, 'add'>;
  /** Asks the filter what it would do with a request. */
  readonly runFilter: FilterRun;
  act(request: OperatorRequest): void;
  readonly peers: Pick<Peers, 'askLeader' | 'claim' | 'isAlone' | 'leader'>;
  readonly isPlanning: boolean;
  readonly unfitReason: string | null;
  peerViews(): readonly PeerView[];
  nodes(): readonly NodeView[];
  resourcesOf(nodeId: string): Readonly<Record<string, readonly ResourceStatus[]>>;
}
