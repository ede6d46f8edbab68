/** A log that keeps nothing. */
export const silent = { info() {}, warn() {}, error() {} };
