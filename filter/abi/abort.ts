/** A trap without text: strings would cost more than they tell, and the line number is in the stack trace. */
export function abort(message: string | null, file: string | null, line: u32, column: u32): void {
  unreachable();
}
