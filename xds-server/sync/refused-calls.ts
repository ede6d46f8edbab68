/** Calls of a node say something about it for so long. */
const LATELY_MS = 10_000;
/** After so long without a refusal the next one is a new one. */
const QUIET_MS = 60_000;
const MOST_NODES = 1_000;

interface Refused {
  readonly sinceMs: number;
  lastMs: number;
  /** What is wrong with its reports, if that is the reason. */
  problem: string | undefined;
  acceptedMs: number | undefined;
}

/**
 * Nodes whose calls are refused. Of one node some may be: after an upgrade its old filter drains while the new one is
 * heard.
 */
export class RefusedCalls {
  readonly #nodes = new Map<string, Refused>();

  /** Whether this is the first of a row, which is worth a line in the log. `problem`: what is wrong with the report. */
  refuse(nodeId: string, problem: string | undefined, nowMs: number): boolean {
    const node = this.#nodes.get(nodeId);
    if (node !== undefined && nowMs - node.lastMs <= QUIET_MS) {
      node.lastMs = nowMs;
      node.problem = problem;
      return false;
    }
    if (this.#nodes.size >= MOST_NODES) this.#nodes.clear();
    this.#nodes.set(nodeId, { sinceMs: nowMs, lastMs: nowMs, problem, acceptedMs: undefined });
    return true;
  }

  accept(nodeId: string, nowMs: number): void {
    const node = this.#nodes.get(nodeId);
    if (node !== undefined) node.acceptedMs = nowMs;
  }

  /** Nodes whose reports are all refused, and what is wrong with them. */
  unread(nowMs: number): ReadonlyMap<string, string> {
    const isLate = (atMs: number | undefined) => atMs !== undefined && nowMs - atMs <= LATELY_MS;
    return new Map(
      [...this.#nodes].flatMap(([nodeId, { sinceMs, lastMs, problem, acceptedMs }]): [string, string][] =>
        problem !== undefined && !isLate(sinceMs) && isLate(lastMs) && !isLate(acceptedMs)
          ? [[nodeId, problem]]
          : [],
      ),
    );
  }
}
