import type { JsonObject } from '@bufbuild/protobuf';

/** Who a client says it is, in its first request. */
export interface NodeIdentity {
  readonly id: string;
  readonly cluster: string;
  readonly region: string;
  readonly metadata: JsonObject;
  /** Such as `envoy`. */
  readonly userAgent: string;
  /** `major.minor.patch`; empty when the client doesn't tell. */
  readonly userAgentVersion: string;
  /** Names of the extensions that an Envoy was built with; absent or empty when the client doesn't tell. */
  readonly extensions?: ReadonlySet<string>;
}
