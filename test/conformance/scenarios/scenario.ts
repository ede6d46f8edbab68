import type { Server } from '../server.js';

/** A rule of the xDS protocol (Envoy's "xDS REST and gRPC protocol", by heading) and a dialogue that shows it. */
export interface Scenario {
  readonly rule: string;
  readonly name: string;
  run(server: Server): Promise<void>;
}
