import { z } from 'zod';

/** Seconds since 1970. */
const claimsSchema = z.object({ iat: z.number().optional(), exp: z.number().optional() });

/** Every JWT begins so: it is `{"` in base64. */
export function looksLikeJwt(credential: string): boolean {
  return credential.startsWith('eyJ');
}

/** What a token says of its life. Nothing is verified: that is the service's part. Null when it is no token. */
export function claimsOf(jwt: string): z.infer<typeof claimsSchema> | null {
  try {
    return claimsSchema.parse(JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString('utf8')));
  } catch {
    return null;
  }
}
