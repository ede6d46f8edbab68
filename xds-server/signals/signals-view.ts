import type { Address, Fleet } from '../fleet/fleet.js';
import type { FleetState } from '../fleet/fleet-state.js';
import type { TokenMix } from '../profiles/profile.js';
import type { CapacityDrift } from './capacity/capacity-watch.js';
import type { CapacityView } from './capacity/measured-capacity.js';
import type { OutsideView } from './capacity/outside-work.js';
import type { RateEstimate } from './demand/demand-estimator.js';
import type { SilentFrontend } from './demand/fleet-demand.js';
import type { RoundTripView } from './network/round-trip.js';
import type { OutlierView, ProfileDrift } from './penalty/outlier-watch.js';
import type { Veto } from './readiness/engine-evidence.js';
import type { Stuck } from './readiness/stuck-replicas.js';

/** All that is known about a fleet at one time. */
export interface SignalsView {
  readonly state: FleetState;
  /** As it is configured: without the round trips that were measured. */
  readonly configuredFleet: Fleet;
  /** By frontend and engine, in the order of the fleet. */
  readonly roundTrips: readonly (readonly RoundTripView[])[];
  /** Pools whose replicas all seem lost, and whose readiness is therefore held. */
  readonly heldPools: readonly string[];
  /** Frontends of which nobody reports, and for how long. */
  readonly silentFrontends: readonly SilentFrontend[];
  /** Nothing is heard of any engine or frontend: what is believed is all old, and nothing should follow from it. */
  readonly isBlind: boolean;
  readonly vetoes: ReadonlyMap<string, Veto>;
  /** Replicas that take requests and end none. */
  readonly stuck: ReadonlyMap<Address, Stuck>;
  /** Work from elsewhere, by engine id, where anything can be said about it. */
  readonly outside: ReadonlyMap<string, OutsideView>;
  /** Latencies compared with what is expected, and the penalties that follow. */
  readonly outliers: readonly OutlierView[];
  /** What engines can do against what their profiles say, and the corrections that follow. */
  readonly capacities: readonly CapacityView[];
  readonly drifts: readonly (ProfileDrift | CapacityDrift)[];
  readonly rates: readonly RateEstimate[];
  /** Mean requests that engines may get, by engine id. */
  readonly mixes: ReadonlyMap<string, TokenMix>;
}
