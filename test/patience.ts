/** How long a test waits for what takes a moment: a busy machine may take so long. It says nothing of how quick that has to be. */
export const PATIENCE_MS = 45_000;
