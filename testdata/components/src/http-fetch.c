#include "cm.h"
/* Answers GET /http/AUTHORITY/PATH and GET /https/AUTHORITY/PATH by fetching that URL: the status and
   the body, or what it was refused with. So a caller chooses where the component tries to go. */
#define T "wasi:http/types@0.2.12"
#define S "wasi:io/streams@0.2.12"
IMP(T,"[constructor]fields") i32 fields_new(void);
IMP(T,"[constructor]outgoing-request") i32 req_new(i32);
IMP(T,"[method]outgoing-request.set-scheme") i32 req_scheme(i32,i32,i32,i32,i32);
IMP(T,"[method]outgoing-request.set-authority") i32 req_authority(i32,i32,const u8*,i32);
IMP(T,"[method]outgoing-request.set-path-with-query") i32 req_path(i32,i32,const u8*,i32);
IMP(T,"[method]future-incoming-response.subscribe") i32 fut_sub(i32);
IMP(T,"[method]future-incoming-response.get") void fut_get(i32,u8*);
IMP(T,"[method]incoming-request.path-with-query") void in_path(i32,u8*);
IMP(T,"[method]incoming-response.status") i32 in_status(i32);
IMP(T,"[method]incoming-response.consume") void in_consume(i32,u8*);
IMP(T,"[method]incoming-body.stream") void in_stream(i32,u8*);
IMP(T,"[constructor]outgoing-response") i32 resp_new(i32);
IMP(T,"[method]outgoing-response.body") void resp_body(i32,u8*);
IMP(T,"[method]outgoing-body.write") void body_write(i32,u8*);
IMP(T,"[static]outgoing-body.finish") void body_finish(i32,i32,i32,u8*);
IMP(T,"[static]response-outparam.set") void out_set(i32,i32,i32,i32,i64,i32,i32,i32,i32);
IMP(T,"[resource-drop]incoming-response") void response_drop(i32);
IMP(T,"[resource-drop]incoming-body") void body_drop(i32);
IMP(S,"[method]output-stream.blocking-write-and-flush") void write_flush(i32,const u8*,i32,u8*);
IMP(S,"[resource-drop]output-stream") void out_drop(i32);
IMP(S,"[method]input-stream.blocking-read") void in_read(i32,i64,u8*);
IMP(S,"[resource-drop]input-stream") void in_drop(i32);
IMP("wasi:io/poll@0.2.12","[method]pollable.block") void block(i32);
IMP("wasi:io/poll@0.2.12","[resource-drop]pollable") void poll_drop(i32);
IMP("wasi:http/outgoing-handler@0.2.12","handle") void handle(i32,i32,i32,u8*);
static _Alignas(8) u8 ret[256]; static u8 line[64];
static i32 word(u32 at){ return *(i32*)(ret+at); }
static u32 put(u32 at,const char*text){ while(*text) line[at++]=(u8)*text++; return at; }
static u32 number(u32 at,u32 n){ if(n>=100) line[at++]='0'+n/100%10; if(n>=10) line[at++]='0'+n/10%10; line[at++]='0'+n%10; return at; }
static void say(i32 stream,u32 length){ line[length++]='\n'; write_flush(stream,line,length,ret); }
static void fetch(i32 req,i32 stream){
  in_path(req,ret); if(!ret[0]) return;
  u8*path=(u8*)word(4); u32 length=word(8); if(length<8||path[0]!='/') return say(stream,put(0,"use /https/AUTHORITY/PATH"));
  u32 tls=path[5]=='s', host=tls?7:6, end=host; while(end<length&&path[end]!='/') end++;
  i32 r=req_new(fields_new()); req_scheme(r,1,(i32)tls,0,0);
  if(req_authority(r,1,path+host,end-host)) return say(stream,put(0,"refused: that is no authority"));
  if(end<length) req_path(r,1,path+end,length-end);
  handle(r,0,0,ret); if(ret[0]) return say(stream,number(put(0,"refused: error "),ret[8]));
  i32 f=word(8), p=fut_sub(f); block(p); poll_drop(p); fut_get(f,ret);
  if(!ret[0]||ret[8]) return say(stream,put(0,"no answer"));
  if(ret[16]) return say(stream, ret[24]==15 ? put(0,"refused: the host denied it") : ret[24]==4 ? put(0,"refused: the host prohibits the address") : number(put(0,"refused: error "),ret[24]));
  i32 response=word(24); say(stream,number(put(0,"status "),in_status(response)));
  in_consume(response,ret); i32 body=word(4); in_stream(body,ret); i32 in=word(4);
  for(;;){ top=0; in_read(in,2048,ret); if(ret[0]) break; u32 n=word(8); if(n) write_flush(stream,(u8*)word(4),n,ret); }
  in_drop(in); body_drop(body); response_drop(response);
}
EXP("wasi:http/incoming-handler@0.2.12#handle") void on_request(i32 req,i32 out){
  i32 r=resp_new(fields_new()); resp_body(r,ret); i32 b=word(4); out_set(out,0,r,0,0,0,0,0,0);
  body_write(b,ret); i32 s=word(4); fetch(req,s); out_drop(s); body_finish(b,0,0,ret);
}
