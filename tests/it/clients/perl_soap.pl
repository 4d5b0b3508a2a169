# SOAP::Lite, as a publisher and an aggregator.
#
# Arguments: the gateway's /RPC2 and a feed. It registers, says so, pings when it is told to
# by a line, and prints what it was notified of.
use strict;
use warnings;
use SOAP::Lite;
use SOAP::Transport::HTTP;

my ($cloud, $feed) = @ARGV;
$| = 1;
alarm 120;
pipe(my $heard, my $told) or die $!;
$told->autoflush(1);

sub feedChanged { print $told "$_[1]\n"; return SOAP::Data->type(boolean => 1) }

# The calls of rssCloud stand in no namespace, and name the path as their action.
my $daemon = SOAP::Transport::HTTP::Daemon->new(LocalAddr => '127.0.0.1', LocalPort => 0)
    ->dispatch_to('feedChanged')->on_action(sub { });
my ($port) = $daemon->url =~ /:(\d+)/;
my $listener = fork() // die $!;
if (!$listener) { $daemon->handle; exit }
END { kill TERM => $listener if $listener }

my $gateway = SOAP::Lite->proxy($cloud)->uri('')->on_action(sub { '"/RPC2"' })
    ->on_fault(sub { ref $_[1] ? $_[1] : die $_[0]->transport->status });

sub call {
    my $answer = $gateway->call(@_);
    die "$_[0]: " . $answer->faultstring if $answer->fault;
    return $answer->result;
}

my $refused = $gateway->call('pleaseNotify', 'feedChanged');
die 'half a registration was taken' unless $refused->fault;
die $refused->faultstring unless $refused->faultstring =~ /aren't enough parameters/;

call('pleaseNotify', 'feedChanged', $port, '/RPC2', 'soap', [$feed]) or die;
print 'tested ', scalar <$heard>;
<STDIN>;
call('ping', $feed) or die;
print 'notified ', scalar <$heard>;
