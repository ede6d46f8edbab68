/** In every answer of a control server's API, so that nobody takes something else that answers for one. */
export const CONTROL_HEADER = 'x-wardrop-control';
