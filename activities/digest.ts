import { createHash } from 'node:crypto';

/** sha256 of a text as 64 hex digits. */
export const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
