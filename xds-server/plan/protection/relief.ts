/** What keeps engines and replicas from being overrun between plans. */
export interface Relief {
  /** 0..1 share of its keys that an engine passes on, by engine id; only those above 0. */
  readonly engines: ReadonlyMap<string, number>;
  /** The same for replicas, by address. */
  readonly replicas: ReadonlyMap<string, number>;
  /** Requests in flight that each Envoy may have per ready replica, by engine id; no limit where absent. */
  readonly limits: ReadonlyMap<string, number>;
  /** Requests in flight at engines that are full, by id; absent where nobody knows. */
  readonly full: ReadonlyMap<string, number>;
  /** Envoys that share the requests of a frontend, by its id; one where absent. */
  readonly envoys: ReadonlyMap<string, number>;
}

export const noRelief: Relief = {
  engines: new Map(),
  replicas: new Map(),
  limits: new Map(),
  full: new Map(),
  envoys: new Map(),
};
