import { WardropError } from '../../errors.js';
import type { LoadReport } from '../../fleet/load-report.js';
import type { NodeIdentity } from './node.js';

/** A `LoadStatsRequest`. */
export interface LoadReportRequest {
  /** Always in the first message of a stream. */
  readonly node?: NodeIdentity;
  readonly report: LoadReport;
}

export interface LoadReportOptions {
  /** The node's frontend, or the error that the node is refused with. */
  readonly resolveFrontend: (node: NodeIdentity) => string | WardropError;
  /** Names of the pools' clusters; they may change. */
  readonly clusters: () => readonly string[];
  /** A node begins to report; what comes back takes its reports. */
  readonly open: (frontendId: string, nodeId: string) => (report: LoadReport) => void;
}

/**
 * One stream of load reports. A client first says only who it is, or, on a new stream, also what it has counted since
 * the old one; then it reports on the clusters that it is asked about, until it is asked about others.
 */
export class LoadReportSession {
  readonly #options: LoadReportOptions;
  readonly #ask: (clusters: readonly string[]) => void;
  #accept: ((report: LoadReport) => void) | undefined;
  #asked: readonly string[] | undefined;

  constructor(options: LoadReportOptions, ask: (clusters: readonly string[]) => void) {
    this.#options = options;
    this.#ask = ask;
  }

  /**
   * @throws {WardropError} WARDROP_NODE_UNKNOWN
   * @throws {WardropError} WARDROP_XDS_REQUEST_INVALID
   */
  receive({ node, report }: LoadReportRequest): void {
    this.#accept ??= this.#open(node);
    const clusters = this.#options.clusters();
    this.#accept(report.filter(({ poolId }) => clusters.includes(poolId)));
    if (this.#asked !== undefined && isSame(clusters, this.#asked)) return;
    this.#asked = clusters;
    this.#ask(clusters);
  }

  #open(node: NodeIdentity | undefined): (report: LoadReport) => void {
    if (node === undefined || node.id === '') {
      throw new WardropError(
        'WARDROP_XDS_REQUEST_INVALID',
        'the xDS client sent a load report without saying which node it is',
      );
    }
    const found = this.#options.resolveFrontend(node);
    if (found instanceof WardropError) throw found;
    return this.#options.open(found, node.id);
  }
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, index) => name === b[index]);
}
