/** Ends a command with a message and no stack trace. */
export class UsageError extends Error {
  /** 1: something failed; 2: the command line or the configuration is wrong. */
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2 = 2) {
    super(message);
    this.exitCode = exitCode;
  }
}
