import { parityOf } from './parity.ts';

parityOf('qwen35');
