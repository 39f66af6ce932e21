import { Fields, OutgoingBody, OutgoingResponse, ResponseOutparam } from 'wasi:http/types@0.2.12';

export const incomingHandler = {
  handle(request, out) {
    const response = new OutgoingResponse(new Fields());
    const body = response.body();
    ResponseOutparam.set(out, { tag: 'ok', val: response });
    const stream = body.write();
    stream.blockingWriteAndFlush(new TextEncoder().encode('hello from JavaScript\n'));
    stream[Symbol.dispose]();
    OutgoingBody.finish(body, undefined);
  },
};
