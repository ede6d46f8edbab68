/**
 * Who picks the host of a request. `override-host`: the filter, by address. The others are native steering: Envoy
 * itself, by the weights of EDS and, except for `round-robin`, by the hash of the affinity key.
 */
export type Steering = 'override-host' | 'maglev' | 'ring-hash' | 'round-robin';
