# Words of a text counted, sorted, changed by regular expressions, joined again.
use strict;
use warnings;
my ($file, $rounds) = @ARGV;
my (%count, $total);
for my $round (1 .. $rounds) {
    open(my $input, '<', $file) or die "$file: $!";
    while (my $line = <$input>) {
        $line =~ s/(\w)(\w*)/\U$1\E$2/g if $. % 3 == 0;
        for my $word (split /[^A-Za-z]+/, $line) {
            $count{$word}++;
            $total += length $word;
        }
    }
    close $input;
}
my @sorted = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
print "$total ", scalar(@sorted), "\n";
print join(' ', map { "$_=$count{$_}" } @sorted[0 .. 20]), "\n";
