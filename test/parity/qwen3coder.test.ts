import { parityOf } from './parity.ts';

parityOf('qwen3coder');
