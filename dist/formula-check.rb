# Runs the Homebrew formula without Homebrew: ruby dist/formula-check.rb FORMULA ARCHIVE. Every system it names has an
# address and a checksum, the archive's checksum is the one of its system, and what it installs is in the archive.
require "digest"
require "tmpdir"

FORMULA, ARCHIVE = ARGV
TARGET = File.basename(ARCHIVE)[/(x86_64|aarch64)[^.]*/]

# What a formula may say, noted down.
class Formula
  class << self
    attr_reader :archives, :system, :blocks

    %i[desc homepage version license].each do |word|
      define_method(word) { |value| (@words ||= {})[word] = value }
    end
    def words = @words
    def on_macos = within(:macos) { yield }
    def on_linux = within(:linux) { yield }
    def on_arm = within(:arm) { yield }
    def on_intel = within(:intel) { yield }
    def url(value) = (@archives ||= {})[@system.dup] = { url: value }
    def sha256(value) = @archives[@system][:sha256] = value
    def service(&block) = (@blocks ||= []) << [:service, block]
    def test(&block) = (@blocks ||= []) << [:test, block]

    def within(part)
      (@system ||= []).push(part)
      yield
      @system.pop
    end
  end

  # Where something is installed; what is not there is an error.
  class Place
    attr_reader :files

    def initialize = @files = []

    def install(*names)
      names.flatten.each do |name|
        name = name.keys.first if name.is_a?(Hash)
        raise "#{name} is not in the archive" unless File.exist?(name)

        @files << name
      end
    end
  end

  %i[bin man1 bash_completion zsh_completion fish_completion doc].each do |name|
    define_method(name) { (@places ||= Hash.new { |all, key| all[key] = Place.new })[name] }
  end
  def places = @places
end

load File.expand_path(FORMULA)
raise "four systems are expected" unless Throughline.archives.size == 4

Throughline.archives.each do |system, found|
  raise "#{system}: no address" unless found[:url].end_with?(".tar.gz")
  raise "#{system}: no checksum" unless found[:sha256].match?(/\A\h{64}\z/)
end
own = Throughline.archives.values.find { |found| found[:url].include?(TARGET) }
if own && own[:sha256] != Digest::SHA256.file(ARCHIVE).hexdigest
  raise "the checksum of #{TARGET} is not that of the archive"
end
raise "description, homepage, version, licence" unless Throughline.words.keys.sort == %i[desc homepage license version]
raise "a service and a test" unless Throughline.blocks.map(&:first).sort == %i[service test]

Dir.mktmpdir do |folder|
  system("tar", "-xzf", ARCHIVE, "-C", folder, "--strip-components", "1", exception: true)
  Dir.chdir(folder) do
    formula = Throughline.new
    formula.install
    empty = formula.places.select { |_, place| place.files.empty? }.keys
    raise "nothing is installed into #{empty.join(', ')}" unless empty.empty? && formula.places.size == 6
  end
end
puts "the formula installs what the archive holds"
