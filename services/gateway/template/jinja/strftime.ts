const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];

const two = (value: number): string => String(value).padStart(2, '0');
const hour12 = (date: Date): number => date.getUTCHours() % 12 || 12;
const dayOfYear = (date: Date): number => Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / 86_400_000) + 1;

const DIRECTIVES: Readonly<Record<string, (date: Date) => string>> = {
  Y: (date) => String(date.getUTCFullYear()),
  y: (date) => two(date.getUTCFullYear() % 100),
  m: (date) => two(date.getUTCMonth() + 1),
  d: (date) => two(date.getUTCDate()),
  j: (date) => String(dayOfYear(date)).padStart(3, '0'),
  B: (date) => MONTHS[date.getUTCMonth()] ?? '',
  b: (date) => (MONTHS[date.getUTCMonth()] ?? '').slice(0, 3),
  A: (date) => DAYS[date.getUTCDay()] ?? '',
  a: (date) => (DAYS[date.getUTCDay()] ?? '').slice(0, 3),
  H: (date) => two(date.getUTCHours()),
  I: (date) => two(hour12(date)),
  M: (date) => two(date.getUTCMinutes()),
  S: (date) => two(date.getUTCSeconds()),
  p: (date) => (date.getUTCHours() < 12 ? 'AM' : 'PM'),
  '%': () => '%',
  '-d': (date) => String(date.getUTCDate()),
  '-m': (date) => String(date.getUTCMonth() + 1),
  '-H': (date) => String(date.getUTCHours()),
  '-I': (date) => String(hour12(date)),
  '-M': (date) => String(date.getUTCMinutes()),
};

/** Python's `strftime` for a moment, in UTC and with English names whatever the machine is set to. */
export function strftime(nowMs: number, format: string): string {
  const date = new Date(nowMs);
  return format.replace(/%(-?.?)/gs, (directive, name: string) => {
    const write = DIRECTIVES[name];
    if (write === undefined) throw new Error(`strftime_now: "${directive}" is not a directive known here`);
    return write(date);
  });
}
