#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* Does what standard input says, a line each: an operation and its paths. Says `ok` with what it read, or the error. */
static void said(int result){ if(result<0) printf("%s\n", strerror(errno)); else printf("ok\n"); }
int main(void){
  static char line[8192]; setvbuf(stdout,0,_IOLBF,0);
  while(fgets(line,sizeof line,stdin)){
    line[strcspn(line,"\n")]=0;
    char*op=strtok(line," "), *a=strtok(0," "), *b=strtok(0," "); if(!op||!a) continue;
    printf("%s %s%s%s: ",op,a,b?" ":"",b?b:"");
    if(!strcmp(op,"read")){ static char t[64]; int d=open(a,O_RDONLY); if(d<0){ said(d); continue; } ssize_t n=read(d,t,sizeof t-1); if(n<0){ said(-1); } else { t[n]=0; printf("ok %s\n",t); } close(d); }
    else if(!strcmp(op,"write")){ int d=open(a,O_WRONLY|O_CREAT,0644); if(d<0){ said(d); continue; } said((int)write(d,"changed",7)); close(d); }
    else if(!strcmp(op,"truncate")){ int d=open(a,O_WRONLY|O_TRUNC); said(d); if(d>=0) close(d); }
    else if(!strcmp(op,"fill")){ int d=open(a,O_WRONLY|O_CREAT,0644); if(d<0){ said(d); continue; } static char z[65536]; long left=atol(b), wrote=0; while(left>0){ ssize_t n=write(d,z,left<65536?left:65536); if(n<=0) break; left-=n; wrote+=n; } printf("%ld bytes%s%s\n",wrote,left?", then ":"",left?strerror(errno):""); close(d); }
    else if(!strcmp(op,"unlink")) said(unlink(a));
    else if(!strcmp(op,"mkdir")) said(mkdir(a,0755));
    else if(!strcmp(op,"rmdir")) said(rmdir(a));
    else if(!strcmp(op,"rename")) said(rename(a,b));
    else if(!strcmp(op,"link")) said(link(a,b));
    else if(!strcmp(op,"symlink")) said(symlink(a,b));
    else if(!strcmp(op,"touch")){ struct timespec t[2]={{1000,0},{1000,0}}; said(utimensat(AT_FDCWD,a,t,0)); }
    else if(!strcmp(op,"stat")){ struct stat s; int r=stat(a,&s); if(r<0) said(r); else printf("ok %lld bytes\n",(long long)s.st_size); }
    else if(!strcmp(op,"list")){ DIR*d=opendir(a); if(!d){ said(-1); continue; } int n=0; errno=0; while(readdir(d)) n++; if(errno) said(-1); else printf("ok %d\n",n); closedir(d); }
    else if(!strcmp(op,"open-many")){ int n=0, most=atoi(b); while(n<most&&open(a,O_RDONLY)>=0) n++; printf("%d open%s%s\n",n,n<most?", then ":"",n<most?strerror(errno):""); }
    else if(!strcmp(op,"try")){ int n=atoi(b), got=0; static char t[64]; for(int i=0;i<n;i++){ int d=open(a,O_RDONLY); if(d<0) continue; ssize_t r=read(d,t,sizeof t-1); if(r>0){ t[r]=0; if(strstr(t,"outside")) got++; } close(d); } printf("%d leaks\n",got); }
    else if(!strcmp(op,"env")){ char*v=getenv(a); printf("%s\n",v?v:"unset"); }
    else printf("?\n");
  }
  return 0;
}
