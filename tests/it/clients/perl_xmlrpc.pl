# XMLRPC::Lite, as a publisher and an aggregator.
#
# Arguments: the gateway's /RPC2 and a feed. It registers, says so, pings when it is told to
# by a line, and prints what it was notified of.
use strict;
use warnings;
use XMLRPC::Lite;
use XMLRPC::Transport::HTTP;

my ($cloud, $feed) = @ARGV;
$| = 1;
alarm 120;
pipe(my $heard, my $told) or die $!;
$told->autoflush(1);

sub river::changed { print $told "$_[1]\n"; return XMLRPC::Data->type(boolean => 1) }

my $daemon = XMLRPC::Transport::HTTP::Daemon->new(LocalAddr => '127.0.0.1', LocalPort => 0)
    ->dispatch_to('river');
my ($port) = $daemon->url =~ /:(\d+)/;
my $listener = fork() // die $!;
if (!$listener) { $daemon->handle; exit }
END { kill TERM => $listener if $listener }

my $gateway = XMLRPC::Lite->proxy($cloud);

sub call {
    my $answer = $gateway->call(@_);
    die "$_[0]: " . $answer->faultstring if $answer->fault;
    return $answer->result;
}

call('rssCloud.pleaseNotify', 'river.changed', $port, '/RPC2', 'xml-rpc', [$feed]) or die;
print 'tested ', scalar <$heard>;
<STDIN>;
call('rssCloud.ping', $feed) or die;
print 'notified ', scalar <$heard>;
my $answer = call('weblogUpdates.ping', 'Tides', $feed);
die $answer->{message} if $answer->{flerror};
