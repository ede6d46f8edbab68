import type { HostPort } from '../fleet/address.js';
import type { Address, Fleet } from '../fleet/fleet.js';
import type { Policy } from '../fleet/policy.js';
import type { Upstream } from '../fleet/upstream.js';
import type { Profile } from '../profiles/profile.js';
import type { ConfigProblem } from './problem.js';
import type { ConfigFile } from './schema/schema.js';

/** A valid configuration, in the words of the other stages. */
export interface Config {
  /** Path of the file. */
  readonly file: string;
  readonly fleet: Fleet;
  readonly profiles: ReadonlyMap<string, Profile>;
  readonly policy: Policy;
  /** Whether penalties of slow engines are only shown, or in force. */
  readonly outlierPenalty: 'observe' | 'enforce';
  /** 0..1 share of keys that are steered; the others are decided on and counted only. */
  readonly steered: number;
  /** One for each (frontend, pool), sorted by these. */
  readonly expectedDemand: readonly ExpectedDemand[];
  /** Where replicas are found, by the id of engines that do not list them. */
  readonly discovery: ReadonlyMap<string, DiscoverySource>;
  /** By the id of engines that are not spoken to in plain HTTP; those of one model are equal. */
  readonly upstreams: ReadonlyMap<string, Upstream>;
  /** One for each file; those that several engines name, once. */
  readonly certificates: readonly DatedCertificate[];
  readonly filter: FilterSettings;
  /** How long engines may be silent. */
  readonly timeouts: ConfigFile['timeouts'];
  /** Whether engines are asked for load reports in their responses. */
  readonly loadReports: boolean;
  /** Where Envoys write their access log; absent for nowhere. */
  readonly accessLog?: string;
  /** Who picks the host of a request. */
  readonly steering: SteeringChoice;
  /** Retry budget of Envoy's own, as a share of active requests; absent for none. */
  readonly retryBackstop?: number;
  readonly server: ServerSettings;
  readonly warnings: readonly ConfigProblem[];
  /** The file with defaults filled in and without secrets, to be shown. */
  readonly shown: ConfigFile;
}

export type SteeringChoice = ConfigFile['steering'];

/** Where the addresses of an engine's replicas come from. */
export type DiscoverySource =
  | { readonly kind: 'dns'; readonly host: string; readonly port: number }
  | { readonly kind: 'srv'; readonly name: string }
  /** Absolute path. */
  | { readonly kind: 'file'; readonly path: string };

/** What a frontend is expected to ask of a pool, and how large its requests are. */
export interface ExpectedDemand extends RequestShape {
  readonly frontendId: string;
  readonly poolId: string;
  readonly requestsPerSecond: number;
}

/** Means over the requests of one frontend to one pool; see `Demand` for the words. */
export interface RequestShape {
  readonly promptTokens: number;
  readonly uncachedPromptTokens: number;
  readonly outputTokens: number;
  readonly followUpShare: number;
  readonly turnGapSeconds: number;
}

/** What filters look at; the same for all frontends. */
export interface FilterSettings {
  readonly readBodies: boolean;
  readonly maxBodyBytes: number;
  readonly placement: boolean;
  /** Lower case, as `tenantHeader`. */
  readonly keyHeaders?: readonly string[];
  readonly keyFields?: readonly string[];
  readonly prefixKeyBytes?: number;
  readonly tenantHeader?: string;
}

export interface ServerSettings {
  readonly xdsListen: Address;
  readonly syncListen: Address;
  readonly adminListen: Address;
  /** Absolute path. */
  readonly stateFile: string;
  readonly token?: string;
  readonly tls?: TlsSettings;
  /** Other control servers of the fleet; may hold this one, too. */
  readonly peers: readonly PeerAddresses[];
  readonly edsIntervalSeconds: number;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error';
}

/** Where another control server is reached. */
export interface PeerAddresses {
  readonly xds: HostPort;
  readonly sync: HostPort;
}

/** PEM texts, and where they came from. */
export interface TlsSettings {
  readonly cert: string;
  readonly key: string;
  readonly clientCa?: string;
  readonly peerCa?: string;
}

/** A file with certificates, and when they are valid. */
export interface DatedCertificate {
  /** Where the file is named, such as `server.tls.cert`. */
  readonly key: string;
  readonly fromMs: number;
  readonly toMs: number;
}
