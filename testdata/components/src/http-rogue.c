#include "cm.h"
/* Misbehaves as the path says, so that each bound can be met by a real HTTP component:
   /spin /sleep /grow /handles /print /lines /late-trap /endless /no-answer /recurse /copy; else it is polite. */
#define T "wasi:http/types@0.2.12"
#define S "wasi:io/streams@0.2.12"
IMP(T,"[constructor]fields") i32 fields_new(void);
IMP(T,"[constructor]outgoing-response") i32 resp_new(i32);
IMP(T,"[method]outgoing-response.body") void resp_body(i32,u8*);
IMP(T,"[method]outgoing-body.write") void body_write(i32,u8*);
IMP(T,"[static]outgoing-body.finish") void body_finish(i32,i32,i32,u8*);
IMP(T,"[static]response-outparam.set") void out_set(i32,i32,i32,i32,i64,i32,i32,i32,i32);
IMP(T,"[method]incoming-request.path-with-query") void in_path(i32,u8*);
IMP(S,"[method]output-stream.blocking-write-and-flush") void write_flush(i32,const u8*,i32,u8*);
IMP(S,"[method]output-stream.write") void write_(i32,const u8*,i32,u8*);
IMP(S,"[resource-drop]output-stream") void stream_drop(i32);
IMP("wasi:cli/stdout@0.2.12","get-stdout") i32 get_stdout(void);
IMP("wasi:clocks/monotonic-clock@0.2.12","subscribe-duration") i32 sleep_for(i64);
IMP("wasi:io/poll@0.2.12","[method]pollable.block") void block(i32);
static _Alignas(8) u8 ret[256]; static u8 page[4096];
static i32 word(u32 at){ return *(i32*)(ret+at); }
static u32 deep(volatile u32 n){ volatile u8 frame[256]; frame[n&255]=(u8)n; return n==~0u ? 0 : deep(n+1)+frame[0]; }
static i32 is(const u8*path,u32 length,const char*text){
  u32 n=0; while(text[n]) n++; if(n!=length) return 0;
  for(u32 i=0;i<n;i++) if(path[i]!=(u8)text[i]) return 0;
  return 1;
}
EXP("wasi:http/incoming-handler@0.2.12#handle") void on_request(i32 req,i32 out){
  in_path(req,ret); u8*p=(u8*)word(4); u32 n=ret[0]?(u32)word(8):0;
  if(is(p,n,"/spin")) for(;;) __asm__ volatile("");
  if(is(p,n,"/sleep")) block(sleep_for(3600000000000LL));
  if(is(p,n,"/grow")) while(__builtin_wasm_memory_grow(0,16)!=(__SIZE_TYPE__)-1);
  if(is(p,n,"/grow")) __builtin_trap();
  if(is(p,n,"/handles")) for(;;) fields_new();
  if(is(p,n,"/recurse")) page[0]=(u8)deep(0);
  if(is(p,n,"/no-answer")) return;
  if(is(p,n,"/print")){ i32 o=get_stdout(); for(;;) write_flush(o,page,4096,ret); }
  if(is(p,n,"/lines")){ i32 o=get_stdout(); for(;;) write_flush(o,(const u8*)"x\n",2,ret); }
  if(is(p,n,"/copy")){ __builtin_wasm_memory_grow(0,1024); i32 o=get_stdout(); write_(o,page,64<<20,ret); }
  i32 r=resp_new(fields_new()); resp_body(r,ret); i32 b=word(4); out_set(out,0,r,0,0,0,0,0,0);
  body_write(b,ret); i32 s=word(4);
  if(is(p,n,"/endless")) for(;;) write_flush(s,page,4096,ret);
  write_flush(s,(const u8*)"polite\n",7,ret);
  if(is(p,n,"/late-trap")) __builtin_trap();
  stream_drop(s); body_finish(b,0,0,ret);
}
