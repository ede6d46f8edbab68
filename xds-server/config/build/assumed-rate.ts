/** What is assumed about requests that the file does not describe. */
export const ASSUMED_RATE = {
  requestsPerSecond: 0,
  promptTokens: 512,
  outputTokens: 128,
  followUpShare: 0.5,
  turnGapSeconds: 30,
};
